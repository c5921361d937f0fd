//! Decides for each run whether it is executed, repeated or skipped, and why. The decisions depend only on
//! the plan, the user's options and the files on disk.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Difference, Expansion, PlannedRun, RunId, RunSpec};
use crate::store::{
    Brief, Deleted, GivenUp, How, LastTry, Listed, Overview, RunRecord, Said, ShortId, State, Store, StoreError, Tries,
};
use crate::units::clock;

use super::history::History;
use super::nearest::{Change, Nearest};

/// What is done with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Action {
    /// The run has no result and will be executed.
    New,
    /// The run has a result, so there is nothing to do.
    Cached,
    /// The run has a result that will be replaced.
    Redo,
    /// The environment spoiled the run and all its retries. The run is executed again only on request.
    #[serde(rename = "given_up")]
    #[strum(serialize = "given up")]
    GivenUp,
    /// Another process is currently measuring the run.
    Pending,
    /// `run` would skip the run, because its result cannot be read or is not needed.
    Pruned,
    /// A result that was measured on an endpoint of the plan, but does not belong to any run of the plan.
    Orphan,
}

impl Action {
    /// All actions, in the order in which tables list them.
    pub(crate) const ALL: [Action; 7] =
        [Action::New, Action::Redo, Action::GivenUp, Action::Pending, Action::Pruned, Action::Cached, Action::Orphan];

    /// Returns the name of the action in tables.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the run will be executed.
    pub(crate) fn is_work(self) -> bool {
        matches!(self, Action::New | Action::Redo)
    }
}

/// The decision about a run, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The action.
    pub(crate) action: Action,
    /// The reason, as text.
    pub reason: String,
    /// The explanation of a new run by the closest results; `None` if there is none, or until `explain` is
    /// called.
    pub change: Option<Change>,
    /// Number of spoiled attempts that count towards the limit of retries.
    pub spoiled: u32,
    /// Whether the next attempt starts a new count of spoiled attempts, because the run was given up and
    /// the user requests it again.
    pub afresh: bool,
}

impl Decision {
    fn new(action: Action, reason: impl Into<String>) -> Decision {
        Decision { action, reason: reason.into(), change: None, spoiled: 0, afresh: false }
    }

    /// Returns the decision to skip a run, with this reason.
    pub(crate) fn pruned(reason: &str) -> Decision {
        Decision::new(Action::Pruned, reason)
    }

    /// Returns the fields in which a new run differs from the closest results; empty if it is not explained
    /// by them.
    pub(crate) fn differences(&self) -> &[Difference] {
        match &self.change {
            Some(Change::Edited(differences) | Change::Added(differences)) => differences,
            _ => &[],
        }
    }
}

/// The user's command-line options that affect the decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Whether all runs are executed again.
    pub force: bool,
    /// Whether runs with an invalid verdict are executed again.
    pub(crate) redo_invalid: bool,
    /// Whether runs that were given up are executed again.
    pub(crate) redo_given_up: bool,
}

/// The results on disk, indexed for queries. A summary of each run is held in memory; whole records are
/// read on demand.
#[derive(Debug, Default)]
pub(crate) struct OnDisk {
    /// The results folder; `None` if there is none.
    store: Option<Store>,
    runs: Overview,
    /// The committed runs whose folders are gone, by short id.
    deleted: HashMap<String, Deleted>,
    /// Attempts since the last commit, by short id.
    tries: HashMap<String, Tries>,
    /// The specs of all possible runs of the plan, by short id.
    wanted: HashMap<ShortId, Arc<RunSpec>>,
    /// The results in the form in which they are compared with new runs; created on the first query.
    nearest: OnceCell<Nearest>,
    /// Evidence about the cost of runs; created on the first query.
    history: OnceCell<History>,
    /// Runs that a test supplies instead of a results folder.
    #[cfg(test)]
    given: Vec<Listed>,
}

impl OnDisk {
    /// Reads a results folder for a plan with these runs.
    pub(crate) fn read(store: &Store, expansion: &Expansion) -> Result<OnDisk, StoreError> {
        let mut disk = OnDisk { store: Some(store.clone()), ..OnDisk::without_results(expansion) };
        disk.runs = store.overview(&|id| disk.wanted.get(&id).map(|spec| &**spec))?;
        disk.deleted = store.deleted()?.into_iter().map(|run| (run.id.clone(), run)).collect();
        disk.tries = store.tries_of(&|id| disk.is_wanted(id))?;
        Ok(disk)
    }

    /// Creates the index for a plan with these runs, without any results.
    pub(crate) fn without_results(expansion: &Expansion) -> OnDisk {
        let wanted = expansion.possible().map(|run| (ShortId::of(&run.id), Arc::clone(&run.spec)));
        OnDisk { wanted: wanted.collect(), ..OnDisk::default() }
    }

    /// Adds the runs that were read to the index of the results folder, so that later sweeps need not read
    /// them again. Errors are ignored.
    pub(crate) fn remember(&self) {
        if let Some(store) = &self.store {
            store.remember(&self.runs);
        }
    }

    /// Returns the attempts at run `id` since its last commit; `None` if there are none.
    pub(crate) fn tries(&self, id: &RunId) -> Option<&Tries> {
        if self.tries.is_empty() { None } else { self.tries.get(&id.short()) }
    }

    /// Returns the inventory entry of run `id` if its folder is gone; otherwise `None`.
    pub(crate) fn deleted(&self, id: &RunId) -> Option<&Deleted> {
        if self.deleted.is_empty() { None } else { self.deleted.get(&id.short()) }
    }

    /// Whether the plan contains the run with this short id.
    pub(crate) fn is_wanted(&self, id: &str) -> bool {
        ShortId::named(id).is_some_and(|id| self.wanted.contains_key(&id))
    }

    /// Whether run `id` has a folder, damaged or not.
    pub(crate) fn has(&self, id: &RunId) -> bool {
        self.runs.get(id).is_some()
    }

    /// Whether run `id` is committed and undamaged.
    pub(crate) fn is_whole(&self, id: &RunId) -> bool {
        self.said(id).is_some()
    }

    /// Returns the summary of the run `id`; `None` unless it is committed and undamaged.
    pub(crate) fn said(&self, id: &RunId) -> Option<&Said> {
        self.runs.get(id).filter(|brief| brief.is_whole())?.said.as_ref()
    }

    /// Returns why the result of run `id` cannot be used; `None` if it can be used or does not exist.
    pub(crate) fn unusable(&self, id: &RunId) -> Option<StoreError> {
        self.runs.get(id)?.unusable(self.store.as_ref()?.layout(), ShortId::of(id))
    }

    /// Reads the record of the run `id`; `None` unless it is committed and undamaged.
    pub(crate) fn record(&self, id: &RunId) -> Option<RunRecord> {
        self.said(id)?;
        self.listed(ShortId::of(id)).filter(|listed| listed.state == State::Whole)?.record
    }

    /// Reads a run, whether damaged or not; `None` if it does not exist or the folder cannot be read.
    pub(crate) fn listed(&self, id: ShortId) -> Option<Listed> {
        #[cfg(test)]
        if let Some(listed) = self.given.iter().find(|listed| listed.id == id.to_string()) {
            return Some(listed.clone());
        }
        self.store.as_ref()?.run(&id.to_string()).ok().flatten()
    }

    /// Calls `tell` for each run, sorted by id; only a few runs are read at a time. An error is
    /// ignored, because the folder was readable before.
    fn each(&self, mut tell: impl FnMut(&Listed)) {
        #[cfg(test)]
        self.given.iter().for_each(&mut tell);
        let runs = self.store.as_ref().and_then(|store| store.stream().ok());
        runs.into_iter().flatten().for_each(|listed| tell(&listed));
    }

    /// Returns the evidence from earlier results about the cost of runs.
    pub(crate) fn history(&self) -> &History {
        self.history.get_or_init(|| {
            let mut history = History::default();
            if !self.runs.is_empty() {
                self.each(|listed| {
                    listed
                        .record
                        .iter()
                        .filter(|_| listed.state == State::Whole)
                        .for_each(|record| history.add(record));
                });
            }
            history.complete()
        })
    }

    /// Whether any undamaged run has an inventory entry that is missing, damaged, or belongs to an earlier
    /// attempt. The next writer repairs such entries.
    pub(crate) fn wants_entries(&self) -> bool {
        self.runs.iter().any(|(_, brief)| brief.wants_entry())
    }

    /// Returns the committed runs that are not in the plan but belong to one of its endpoints, sorted by
    /// id. `is_ours` returns whether an endpoint belongs to the plan. This check is needed because a
    /// results folder may be used by several plans, and a record contains the name of its endpoint, but no
    /// plan. Runs whose records cannot be read are omitted.
    pub(crate) fn orphans(&self, is_ours: impl Fn(&str) -> bool) -> Vec<ShortId> {
        let left = self.runs.iter().filter(|(id, _)| !self.wanted.contains_key(id));
        let is_orphan = |brief: &Brief| brief.said.as_ref().is_some_and(|said| is_ours(&said.endpoint));
        let mut orphans: Vec<ShortId> = left.filter(|(_, brief)| is_orphan(brief)).map(|(id, _)| id).collect();
        orphans.sort_unstable();
        orphans
    }

    fn nearest(&self) -> &Nearest {
        self.nearest.get_or_init(|| {
            let mut nearest = Nearest::default();
            self.each(|listed| {
                let record = listed.record.iter();
                record.for_each(|record| nearest.add(&record.spec, self.is_wanted(&listed.id)));
            });
            nearest.complete()
        })
    }
}

/// Decides about one run. `retries` is the number of retries after the environment spoils the run.
/// `is_invalid` returns whether a committed run has an invalid verdict; it is called only if the decision
/// depends on it.
pub(crate) fn decide(
    run: &PlannedRun,
    disk: &OnDisk,
    (wishes, retries): (Wishes, u32),
    is_invalid: &dyn Fn(&RunRecord) -> bool,
) -> Decision {
    let decision = by_result(run, disk, wishes, is_invalid);
    match disk.tries(&run.id) {
        Some(tries) if decision.action.is_work() => {
            // A run with a usable result is repeated only on request, so such a run was requested.
            let asked = wishes.force || wishes.redo_given_up || disk.is_whole(&run.id);
            tried(decision, tries, retries, asked)
        }
        _ => decision,
    }
}

/// Returns the decision to repeat a run that has a result, for the given reason.
pub(crate) fn again(run: &PlannedRun, disk: &OnDisk, retries: u32, reason: String) -> Decision {
    let decision = Decision::new(Action::Redo, reason);
    match disk.tries(&run.id) {
        Some(tries) => tried(decision, tries, retries, true),
        None => decision,
    }
}

/// Adapts the decision to execute a run to the earlier attempts at it. If the run was given up, it is
/// executed only if `asked` is set, which means that it was requested again.
fn tried(mut decision: Decision, tries: &Tries, retries: u32, asked: bool) -> Decision {
    let given_up = given_up(tries, retries).map(given_up_words);
    let words = match (&given_up, &tries.last) {
        (Some(words), _) if asked => Some(format!("{words}, and requested again")),
        (Some(words), _) => Some(words.clone()),
        (None, last) => last.as_ref().map(|last| last_words(last, tries.spoiled, Some(retries))),
    };
    decision.afresh = given_up.is_some() && asked;
    decision.spoiled = if decision.afresh { 0 } else { tries.spoiled };
    if given_up.is_some() && !asked {
        let but = if decision.reason == NEVER { String::new() } else { format!("; {}", decision.reason) };
        decision.reason = words.unwrap_or_default() + &but;
        decision.action = Action::GivenUp;
    } else if let (Action::New, Some(words)) = (decision.action, words) {
        let before = if decision.reason == NEVER { String::new() } else { format!("{}; ", decision.reason) };
        decision.reason = before + &words;
    }
    decision
}

/// Returns how a run was given up, if it is still given up with `retries` retries; otherwise `None`. If the
/// plan now allows more retries than before, the run is tried again. If it allows none, no run is given up.
fn given_up(tries: &Tries, retries: u32) -> Option<&GivenUp> {
    tries.given_up.as_ref().filter(|given_up| retries > 0 && given_up.times >= retries)
}

/// Describes the attempts at a run as text, without the number of retries, which is known only from a plan.
pub(crate) fn tries_words(tries: &Tries) -> String {
    match (&tries.given_up, &tries.last) {
        (Some(given_up), _) => given_up_words(given_up),
        (None, Some(last)) => last_words(last, tries.spoiled, None),
        (None, None) => NEVER.to_owned(),
    }
}

/// Describes how a run was given up: `given up: 429 (3 of 3)`, that is, after 3 of 3 retries.
pub(crate) fn given_up_words(given_up: &GivenUp) -> String {
    let GivenUp { times, spoiled, .. } = given_up;
    format!("given up: {} ({times} of {times})", spoiled.cause)
}

/// Describes how the last attempt ended: `interrupted 14:43`, `failed: no room on the disk`, or `failed:
/// 429 (2 of 3)`, that is, after 2 of 3 retries. `retries` is the maximum number of retries; `None` if no
/// plan is known.
pub(crate) fn last_words(last: &LastTry, spoiled: u32, retries: Option<u32>) -> String {
    match &last.how {
        How::UnderWay(pid) => format!("process {pid} is making attempt {}", last.number),
        How::Interrupted => match last.ended {
            Some(ended) => format!("interrupted {}", clock::time_of(ended.0)),
            None => "interrupted".to_owned(),
        },
        How::Failed(reason) => format!("failed: {reason}"),
        How::Spoiled(what) => {
            let again = retries.filter(|retries| *retries > 0 && spoiled > 1);
            let count =
                again.map(|retries| format!(" ({} of {retries})", (spoiled - 1).min(retries))).unwrap_or_default();
            format!("failed: {}{count}", what.cause)
        }
    }
}

/// Changes the decision to [`Action::Pending`] if another process is currently measuring the run.
pub(crate) fn or_pending(decision: &mut Decision, run: &PlannedRun, disk: &OnDisk) {
    let last = disk.tries(&run.id).and_then(|tries| tries.last.as_ref());
    if let Some(last) = last.filter(|last| decision.action.is_work() && matches!(last.how, How::UnderWay(_))) {
        decision.action = Action::Pending;
        decision.reason = last_words(last, 0, None);
    }
}

/// The reason for executing a run that has neither a result nor attempts.
const NEVER: &str = "never committed";

/// Decides about a run from its result, without considering uncommitted attempts.
fn by_result(run: &PlannedRun, disk: &OnDisk, wishes: Wishes, is_invalid: &dyn Fn(&RunRecord) -> bool) -> Decision {
    let Some(brief) = disk.runs.get(&run.id) else {
        let said = disk.deleted(&run.id).map_or_else(|| NEVER.to_owned(), Deleted::said);
        return Decision::new(Action::New, said);
    };
    let said = match (&brief.state, &brief.said) {
        // The result may be undamaged, so the run is repeated only on request.
        (State::Unreadable(reason), _) if !wishes.force => {
            return Decision::new(Action::Pruned, format!("its result is kept but cannot be used: {reason}"));
        }
        (State::Unreadable(_), _) => return Decision::new(Action::Redo, "forced"),
        (State::Corrupt(reason), _) => return Decision::new(Action::Redo, format!("corrupt: {reason}")),
        (State::Whole, None) => return Decision::new(Action::Redo, "corrupt: run.json cannot be read"),
        (State::Whole, Some(said)) => said,
    };
    // The id is compared instead of the spec, because specs that differ only in names have equal ids.
    if said.id != Some(run.id) || !said.is_sound {
        return Decision::new(Action::Redo, "corrupt: the id in run.json does not match its contents");
    }
    if wishes.force {
        return Decision::new(Action::Redo, "forced");
    }
    if wishes.redo_invalid && disk.record(&run.id).is_some_and(|record| is_invalid(&record)) {
        return Decision::new(Action::Redo, "its verdict is invalid");
    }
    Decision::new(Action::Cached, format!("committed {:.19}Z", said.ended.to_string()))
}

/// Adds to the decision about a new run how it differs from the closest results. `asked` is the total
/// number of runs to explain.
pub(crate) fn explain(decision: &mut Decision, run: &PlannedRun, disk: &OnDisk, asked: usize) {
    // The decision about a run that was deleted, or that was attempted before, already contains an
    // explanation.
    if decision.action != Action::New || disk.deleted(&run.id).is_some() || disk.tries(&run.id).is_some() {
        return;
    }
    if Nearest::may_compare(asked, disk.runs.len()) {
        decision.change = disk.nearest().find(&run.spec);
    }
    // The result has an equal spec but a different id, so only the version of the measurement
    // method, which the program sets, differs.
    if decision.change == Some(Change::Meaning) {
        decision.reason = "its result is from an older sweepline, whose numbers have a different meaning".to_owned();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::expand::expand;
    use crate::plan::{Format, parse};
    use crate::rows::Spoiled;

    /// Returns the runs of a plan with an open loop at these rates.
    fn runs(rates: &[u32]) -> Expansion {
        let plan = json!({
            "sweepline": 1, "name": "t", "endpoints": { "e": { "engine": "mock" } }, "models": { "m": { "id": "x" } },
            "sweeps": { "s": { "matrix": { "endpoint": "e", "model": "m", "qps": rates } } },
        });
        let plan = parse("plan.yaml".as_ref(), &plan.to_string(), Format::Yaml).expect("a plan").plan;
        expand(&plan).expect("expands")
    }

    /// Returns the index of a results folder with these runs, for a plan with the runs of `expansion`.
    fn disk_with(listed: Vec<Listed>, expansion: &Expansion) -> OnDisk {
        let disk = OnDisk::without_results(expansion);
        let common = crate::store::Common::default();
        let brief = |listed: &Listed| {
            let id = ShortId::named(&listed.id).expect("a short id");
            (id, Brief::of(listed, &common, disk.wanted.get(&id).map(|spec| &**spec)))
        };
        OnDisk { runs: Overview::of(listed.iter().map(brief)), given: listed, ..disk }
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
        let on_disk = |listed| disk_with(listed, &plan);
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
        assert_eq!(
            decided(run, &on_disk(vec![closed()]), redo, true).0,
            Action::Pruned,
            "an unreadable record is kept"
        );
        assert_eq!(decided(run, &on_disk(vec![closed()]), force, true).0, Action::Redo);
        let gone = Deleted { id: run.id.short(), entry: Err("cut".into()) };
        let (action, reason) =
            decided(run, &OnDisk { deleted: [(run.id.short(), gone)].into(), ..on_disk(vec![]) }, none, false);
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
            let disk = OnDisk { tries: tries.clone(), ..disk_with(listed, &plan) };
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
        let disk = OnDisk { tries: given_up, ..disk_with(vec![corrupt], &plan) };
        let decision = decide(run, &disk, (none, 3), &|_| false);
        assert_eq!((decision.action, decision.reason), (Action::GivenUp, format!("{words}; corrupt: cut")));
    }

    /// Returns the difference in one field.
    fn one(field: &str, old: impl ToString, new: impl ToString) -> Difference {
        Difference { field: field.to_owned(), old: Some(old.to_string()), new: Some(new.to_string()) }
    }

    /// Explains the only new run of `new` by the closest runs of `old`.
    fn change(old: &[&Expansion], new: &Expansion) -> Option<Change> {
        let disk = disk_with(old.iter().flat_map(|old| &old.runs).map(committed).collect(), new);
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
            let disk = disk_with(before.runs.iter().map(committed).collect(), &after);
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
}
