//! Tests of the decisions about runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::expand::{Expansion, RunId, expand};
use crate::plan::{Format, parse};
use crate::rows::Spoiled;
use crate::store::Listed;

/// Returns the runs of a plan with an open loop at these rates.
fn runs(rates: &[u32]) -> Expansion {
    let plan = json!({
        "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
        "sweeps": { "s": { "matrix": { "endpoint": "e", "model": "m", "qps": rates } } },
    });
    let plan = parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan;
    expand(&plan).expect("expands")
}

fn committed(run: &PlannedRun) -> Listed {
    let time = "2026-01-02T03:04:05.678Z";
    let record = json!({
        "format": 1, "id": run.id.to_string(), "attempt": 1, "started": time, "ended": time, "spec": *run.spec,
        "environment": { "models": [], "sweepline": "", "client_host": "", "client_os": "", "client_cores": 1 },
        "facts": crate::rows::Facts::default(), "generator_digest": "", "files": {},
    });
    let record = serde_json::from_value(record).expect("a record");
    let (dir, entered) = (PathBuf::new(), crate::store::Entered::Same);
    Listed { id: run.id.short(), dir, state: State::Whole, record: Some(record), entered }
}

fn decided(run: &PlannedRun, disk: &OnDisk, wishes: Wishes, invalid: bool) -> (Action, String) {
    let decision = decide(run, disk, (wishes, 3), &|_| invalid);
    (decision.action, decision.reason)
}

#[test]
fn what_is_on_disk_decides() {
    let plan = runs(&[5]);
    let run = &plan.runs[0];
    let on_disk = |listed| OnDisk::holding(listed, &plan);
    let (none, force) = (Wishes::default(), Wishes { force: true, ..Wishes::default() });
    let redo = Wishes { redo_invalid: true, ..Wishes::default() };
    let whole = || on_disk(vec![committed(run)]);
    assert_eq!(decided(run, &on_disk(vec![]), force, true), (Action::New, "never committed".into()));
    assert_eq!(decided(run, &whole(), none, true), (Action::Cached, "committed 2026-01-02T03:04:05Z".into()));
    assert_eq!(decided(run, &whole(), force, false), (Action::Redo, "forced".into()));
    assert_eq!(decided(run, &whole(), redo, true), (Action::Redo, "its verdict is invalid".into()));
    assert_eq!(decided(run, &whole(), redo, false).0, Action::Cached);
    let corrupt = Listed { state: State::Corrupt("cut".into()), record: None, ..committed(run) };
    assert_eq!(decided(run, &on_disk(vec![corrupt]), none, false), (Action::Redo, "corrupt: cut".into()));
    let closed = || Listed { state: State::Unreadable("no key".into()), record: None, ..committed(run) };
    assert_eq!(decided(run, &on_disk(vec![closed()]), redo, true).0, Action::Pruned, "an unreadable record is kept");
    assert_eq!(decided(run, &on_disk(vec![closed()]), force, true).0, Action::Redo);
    let gone = Deleted { id: run.id.short(), entry: Err("cut".into()) };
    let (action, reason) = decided(run, &on_disk(vec![]).without_folder(&run.id, gone), none, false);
    assert!(action == Action::New && reason.contains("has since been deleted"), "{reason}");
    let old = Listed { id: "0".repeat(16), ..committed(run) };
    let mut new = Decision::new(Action::New, NEVER);
    explain(&mut new, run, &on_disk(vec![old]), 1);
    assert!(new.reason.contains("an older sweepline") && new.differences().is_empty(), "{}", new.reason);
    let other = Listed { id: run.id.short(), ..committed(&runs(&[6]).runs[0]) };
    let (action, reason) = decided(run, &on_disk(vec![other]), none, false);
    assert_eq!(action, Action::Redo);
    assert!(reason.starts_with("corrupt: the id in run.json does not match its contents"), "{reason}");
}

/// Returns the attempts at the run: `spoiled` of them were spoiled, the run was given up after `times`
/// retries (`None` if it was not), and the last attempt ended with `how`.
fn tried_so(run: &PlannedRun, spoiled: u32, times: Option<u32>, how: How) -> HashMap<String, Tries> {
    let cause = crate::rows::SpoilCause::RateLimited;
    let what = Spoiled { cause, detail: "429 Too Many Requests".into(), retry_after: None };
    let given_up = times.map(|times| GivenUp { number: spoiled, times, ended: None, spoiled: what });
    let last = LastTry { number: 9, started: None, ended: None, how, given_up: None };
    HashMap::from([(run.id.short(), Tries { spoiled, last: Some(last), given_up })])
}

#[test]
fn what_was_tried_is_never_called_new_alone() {
    let plan = runs(&[5]);
    let run = &plan.runs[0];
    let limited = || {
        let cause = crate::rows::SpoilCause::RateLimited;
        How::Spoiled(Spoiled { cause, detail: "429 Too Many Requests".into(), retry_after: None })
    };
    let none = Wishes::default();
    let redo = Wishes { redo_given_up: true, ..none };
    let force = Wishes { force: true, ..none };
    let says = |tries: &HashMap<String, Tries>, has_result: bool, (wishes, retries)| {
        let listed = if has_result { vec![committed(run)] } else { Vec::new() };
        let disk = OnDisk::holding(listed, &plan).with_tries(tries.clone());
        let Decision { action, reason, spoiled, afresh, .. } = decide(run, &disk, (wishes, retries), &|_| false);
        (action, reason, spoiled, afresh)
    };
    let new = |reason: &str, spoiled, afresh| (Action::New, reason.to_owned(), spoiled, afresh);
    let failed = tried_so(run, 0, None, How::Failed("too few files".into()));
    assert_eq!(says(&failed, false, (none, 3)), new("failed: too few files", 0, false));
    let interrupted = tried_so(run, 2, None, How::Interrupted);
    assert_eq!(says(&interrupted, false, (none, 3)), new("interrupted", 2, false));
    assert_eq!(says(&tried_so(run, 1, None, limited()), false, (none, 3)), new("failed: 429", 1, false));
    assert_eq!(says(&tried_so(run, 3, None, limited()), false, (none, 3)), new("failed: 429 (2 of 3)", 3, false));
    assert_eq!(says(&tried_so(run, 3, None, limited()), false, (none, 0)), new("failed: 429", 3, false));
    // The run is given up, so it is not retried unless requested.
    let given_up = tried_so(run, 4, Some(3), limited());
    let words = "given up: 429 (3 of 3)";
    assert_eq!(says(&given_up, false, (none, 3)), (Action::GivenUp, words.into(), 4, false));
    assert_eq!(says(&given_up, false, (none, 2)).0, Action::GivenUp);
    for wishes in [redo, force] {
        let again = new(&format!("{words}, and requested again"), 0, true);
        assert_eq!(says(&given_up, false, (wishes, 3)), again);
    }
    // If the plan allows more retries, counting continues; if it allows none, the run is never given
    // up.
    assert_eq!(says(&given_up, false, (none, 5)), new("failed: 429 (3 of 5)", 4, false));
    assert_eq!(says(&given_up, false, (none, 0)), new("failed: 429", 4, false));
    // A usable result is replaced only if `force` is set; `redo_given_up` does not replace it.
    let (action, _, _, afresh) = says(&given_up, true, (redo, 3));
    assert_eq!((action, afresh), (Action::Cached, false));
    assert_eq!(says(&given_up, true, (force, 3)), (Action::Redo, "forced".into(), 0, true));
    let corrupt = Listed { state: State::Corrupt("cut".into()), record: None, ..committed(run) };
    let disk = OnDisk::holding(vec![corrupt], &plan).with_tries(given_up);
    let decision = decide(run, &disk, (none, 3), &|_| false);
    assert_eq!((decision.action, decision.reason), (Action::GivenUp, format!("{words}; corrupt: cut")));
}

/// Returns the difference in one field.
fn one(field: &str, old: impl ToString, new: impl ToString) -> Difference {
    Difference { field: field.to_owned(), old: Some(old.to_string()), new: Some(new.to_string()) }
}

/// Explains the only new run of `new` by the closest runs of `old`.
fn change(old: &[&Expansion], new: &Expansion) -> Option<Change> {
    let disk = OnDisk::holding(old.iter().flat_map(|old| &old.runs).map(committed).collect(), new);
    let run = new.runs.iter().find(|run| !disk.has(&run.id)).expect("a new run");
    let mut decision = decide(run, &disk, (Wishes::default(), 3), &|_| false);
    explain(&mut decision, run, &disk, 1);
    decision.change
}

#[test]
fn the_edit_is_told_whatever_else_is_near() {
    let seeded = |seed: u64, rates: &[u32]| {
        let mut expansion = runs(rates);
        for run in &mut expansion.runs {
            let spec = crate::expand::RunSpec { seed: crate::units::Seed(seed), ..(*run.spec).clone() };
            run.id = RunId::of(&spec);
            run.spec = spec.into();
        }
        expansion
    };
    // An added rate is not described as an edit of an existing rate.
    assert_eq!(change(&[&runs(&[5])], &runs(&[5, 6])), Some(Change::Added(vec![one("load.qps", 5, 6)])));
    // Two results of earlier plans differ from the new run in one field each. The result whose names
    // equal those of the new run is preferred, so the edited field is the seed.
    let (a, b) = (seeded(1, &[5]), seeded(2, &[6]));
    assert_eq!(change(&[&a, &b], &seeded(2, &[5])), Some(Change::Edited(vec![one("seed", 1, 2)])));
    // It is unknown which of the two old rates the new rate replaced, but in either case the rate
    // changed.
    let told = change(&[&runs(&[5, 6])], &runs(&[7]));
    assert_eq!(told, Some(Change::Edited(vec![one("load.qps", "5 or 6", 7)])));
    // A run that differs in too many fields is not explained by the result.
    let mut far = seeded(3, &[9]);
    let mut spec = (*far.runs[0].spec).clone();
    Arc::make_mut(&mut spec.endpoint).name = "z".to_owned();
    Arc::make_mut(&mut spec.model).id = "y".to_owned();
    (spec.scenario.prompt_tokens, spec.repeat) = (99, 4);
    far.runs[0].id = RunId::of(&spec);
    far.runs[0].spec = spec.into();
    assert_eq!(change(&[&runs(&[5])], &far), None);
}

proptest! {
    /// An edit of one rate is described as exactly that edit, whatever other results are committed, and
    /// never as a change of a run that is still in the plan.
    #[test]
    fn a_new_run_is_told_by_what_the_plan_lost(
        rates in proptest::collection::btree_set(1u32..1000, 2..6), at in 0usize..6, new in 1000u32..2000,
    ) {
        let old: Vec<u32> = rates.into_iter().collect();
        let mut edited = old.clone();
        let at = at % old.len();
        edited[at] = new;
        let (before, after) = (runs(&old), runs(&edited));
        let disk = OnDisk::holding(before.runs.iter().map(committed).collect(), &after);
        prop_assert_eq!(disk.orphans(|endpoint| endpoint == "e").len(), 1);
        prop_assert_eq!(disk.orphans(|endpoint| endpoint == "f").len(), 0);
        for run in &after.runs {
            let mut decision = decide(run, &disk, (Wishes::default(), 3), &|_| false);
            explain(&mut decision, run, &disk, after.runs.len());
            let is_new = !before.runs.iter().any(|old| old.id == run.id);
            prop_assert_eq!(decision.action, if is_new { Action::New } else { Action::Cached });
            if is_new {
                prop_assert_eq!(decision.change, Some(Change::Edited(vec![one("load.qps", old[at], new)])));
            }
        }
    }
}
