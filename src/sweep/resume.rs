//! Run, skip or redo: a pure function of what is on disk, with the reason.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::expand::{Difference, Expansion, PlannedRun, RunId, differences};
use crate::store::{Listed, RunRecord, State};

/// What is to be done with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// There is no result: it will run.
    New,
    /// Its result is there: nothing is to do.
    Cached,
    /// There is a result that will be replaced.
    Redo,
    /// A result that no run of the plan asks for.
    Orphan,
}

impl Action {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Action::New => "new",
            Action::Cached => "cached",
            Action::Redo => "redo",
            Action::Orphan => "orphan",
        }
    }

    /// Whether the run will be executed.
    pub fn is_work(self) -> bool {
        matches!(self, Action::New | Action::Redo)
    }
}

/// One decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is to be done.
    pub action: Action,
    /// Why, in words.
    pub reason: String,
    /// Where the nearest committed run differs, for a new run that has one.
    pub changed: Vec<Difference>,
}

impl Decision {
    fn new(action: Action, reason: impl Into<String>) -> Decision {
        Decision { action, reason: reason.into(), changed: Vec::new() }
    }
}

/// What the user asked for besides the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Run everything again.
    pub force: bool,
    /// Run invalid runs again.
    pub redo_invalid: bool,
}

/// What is on disk, ready to be asked.
#[derive(Debug, Default)]
pub struct OnDisk {
    by_id: HashMap<String, Listed>,
    /// Short ids of the runs that the plan asks for.
    wanted: HashSet<String>,
}

impl OnDisk {
    /// What a listing found, seen from a plan with these runs.
    pub fn new(listed: Vec<Listed>, expansion: &Expansion) -> OnDisk {
        OnDisk {
            by_id: listed.into_iter().map(|run| (run.id.clone(), run)).collect(),
            wanted: expansion.runs.iter().map(|run| run.id.short()).collect(),
        }
    }

    /// The folder of run `id`, whole or not.
    pub fn get(&self, id: &RunId) -> Option<&Listed> {
        self.by_id.get(&id.short())
    }

    /// The committed, whole run `id`.
    pub fn record(&self, id: &RunId) -> Option<&RunRecord> {
        self.get(id).filter(|listed| listed.state == State::Whole)?.record.as_ref()
    }

    /// Committed runs that no run of the plan asks for, sorted by id.
    pub fn orphans(&self) -> Vec<&Listed> {
        let mut orphans: Vec<&Listed> = self.by_id.values().filter(|run| !self.wanted.contains(&run.id)).collect();
        orphans.sort_by(|a, b| a.id.cmp(&b.id));
        orphans
    }

    /// Where `run` differs from the committed run that is nearest to it: the one with the fewest differences, and among
    /// those one that the plan no longer asks for, because that is what an edit leaves behind.
    fn nearest(&self, run: &PlannedRun) -> Option<Vec<Difference>> {
        let records = self.by_id.values().filter_map(|listed| Some((listed, listed.record.as_ref()?)));
        let ranked = records.map(|(listed, record)| {
            (differences(&record.spec, &run.spec), self.wanted.contains(&listed.id), record.id.as_str())
        });
        let nearest = ranked.min_by(|a, b| (a.0.len(), a.1, a.2).cmp(&(b.0.len(), b.1, b.2)));
        // With many differences it is another run, not a changed one.
        nearest.map(|(changed, ..)| changed).filter(|changed| changed.len() <= MOST_CHANGES)
    }
}

/// A run that differs in more fields than this is not called a changed one.
const MOST_CHANGES: usize = 4;
/// Comparisons of specs that a preview may take; beyond it new runs are only called new.
const MOST_COMPARISONS: usize = 50_000;

/// Decides about one run. `is_invalid` says whether a committed run's verdict is invalid; it is asked only when that
/// matters.
pub fn decide(run: &PlannedRun, disk: &OnDisk, wishes: Wishes, is_invalid: &dyn Fn(&RunRecord) -> bool) -> Decision {
    let Some(listed) = disk.get(&run.id) else {
        return Decision::new(Action::New, "never committed");
    };
    let record = match (&listed.state, &listed.record) {
        (State::Corrupt(reason), _) => return Decision::new(Action::Redo, format!("corrupt: {reason}")),
        (State::Whole, None) => return Decision::new(Action::Redo, "corrupt: run.json cannot be read"),
        (State::Whole, Some(record)) => record,
    };
    if record.id != run.id.to_string() || RunId::of(&record.spec) != run.id {
        return Decision::new(Action::Redo, "corrupt: run.json describes another run than its id names");
    }
    if wishes.force {
        return Decision::new(Action::Redo, "forced");
    }
    if wishes.redo_invalid && is_invalid(record) {
        return Decision::new(Action::Redo, "its verdict is invalid");
    }
    Decision::new(Action::Cached, format!("committed {:.19}Z", record.ended.to_string()))
}

/// Adds to a new run's decision where the nearest committed run differs, while that stays cheap.
pub fn explain(decision: &mut Decision, run: &PlannedRun, disk: &OnDisk, asked: usize) {
    if decision.action != Action::New || disk.by_id.is_empty() || asked * disk.by_id.len() > MOST_COMPARISONS {
        return;
    }
    if let Some(changed) = disk.nearest(run) {
        // Another id of an equal spec: only the version of the measurement differs, and that is the program's.
        if changed.is_empty() {
            decision.reason = "its result is of an older sweepline, whose numbers mean something else".to_owned();
            return;
        }
        let text: Vec<String> = changed.iter().map(Difference::to_string).collect();
        decision.reason = format!("changed: {}", text.join(", "));
        decision.changed = changed;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::expand::expand;
    use crate::plan::Plan;

    /// The runs of a plan with an open loop at these rates.
    fn runs(rates: &[u32]) -> Expansion {
        let plan: Plan = serde_json::from_value(json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "sweeps": { "s": { "matrix": { "endpoint": "e", "model": "m", "qps": rates } } },
        }))
        .expect("a plan");
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
        Listed { id: run.id.short(), dir: PathBuf::new(), state: State::Whole, record: Some(record) }
    }

    fn decided(run: &PlannedRun, disk: &OnDisk, wishes: Wishes, invalid: bool) -> (Action, String) {
        let decision = decide(run, disk, wishes, &|_| invalid);
        (decision.action, decision.reason)
    }

    #[test]
    fn what_is_on_disk_decides() {
        let plan = runs(&[5]);
        let run = &plan.runs[0];
        let on_disk = |listed| OnDisk::new(listed, &plan);
        let (none, force) = (Wishes::default(), Wishes { force: true, redo_invalid: false });
        let redo = Wishes { force: false, redo_invalid: true };
        let whole = || on_disk(vec![committed(run)]);
        assert_eq!(decided(run, &on_disk(vec![]), force, true), (Action::New, "never committed".into()));
        assert_eq!(decided(run, &whole(), none, true), (Action::Cached, "committed 2026-01-02T03:04:05Z".into()));
        assert_eq!(decided(run, &whole(), force, false), (Action::Redo, "forced".into()));
        assert_eq!(decided(run, &whole(), redo, true), (Action::Redo, "its verdict is invalid".into()));
        assert_eq!(decided(run, &whole(), redo, false).0, Action::Cached);
        let corrupt = Listed { state: State::Corrupt("cut".into()), record: None, ..committed(run) };
        assert_eq!(decided(run, &on_disk(vec![corrupt]), none, false), (Action::Redo, "corrupt: cut".into()));
        let old = Listed { id: "0".repeat(16), ..committed(run) };
        let mut new = Decision::new(Action::New, "never committed");
        explain(&mut new, run, &on_disk(vec![old]), 1);
        assert!(new.reason.contains("an older sweepline") && new.changed.is_empty(), "{}", new.reason);
        let other = Listed { id: run.id.short(), ..committed(&runs(&[6]).runs[0]) };
        let (action, reason) = decided(run, &on_disk(vec![other]), none, false);
        assert_eq!(action, Action::Redo);
        assert!(reason.starts_with("corrupt: run.json describes another run"), "{reason}");
    }

    proptest! {
        /// An edit of one rate is told as that edit, whatever else is committed, and never as a change of a run that
        /// the plan still has.
        #[test]
        fn a_new_run_is_told_by_what_the_plan_lost(
            rates in proptest::collection::btree_set(1u32..1000, 2..6), at in 0usize..6, new in 1000u32..2000,
        ) {
            let old: Vec<u32> = rates.into_iter().collect();
            let mut edited = old.clone();
            let at = at % old.len();
            edited[at] = new;
            let (before, after) = (runs(&old), runs(&edited));
            let disk = OnDisk::new(before.runs.iter().map(committed).collect(), &after);
            prop_assert_eq!(disk.orphans().len(), 1);
            for run in &after.runs {
                let mut decision = decide(run, &disk, Wishes::default(), &|_| false);
                explain(&mut decision, run, &disk, after.runs.len());
                let is_new = !before.runs.iter().any(|old| old.id == run.id);
                prop_assert_eq!(decision.action, if is_new { Action::New } else { Action::Cached });
                if is_new {
                    prop_assert_eq!(decision.reason, format!("changed: load.qps: {} → {new}", old[at]));
                }
            }
        }
    }
}
