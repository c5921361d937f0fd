//! Run, skip or redo: a pure function of what is on disk, with the reason.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Difference, Expansion, PlannedRun, RunId};
use crate::store::{Deleted, Listed, RunRecord, State};

use super::nearest::{Change, Known, Nearest};

/// What is to be done with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// There is no result: it will run.
    New,
    /// Its result is there: nothing is to do.
    Cached,
    /// There is a result that will be replaced.
    Redo,
    /// Another process is measuring it at this moment.
    Pending,
    /// It has no result that could be read, and `run` would leave it out.
    Pruned,
    /// A result that no run of the plan asks for, of an endpoint that the plan has.
    Orphan,
}

impl Action {
    /// Every action, in the order of tables.
    pub const ALL: [Action; 6] =
        [Action::New, Action::Redo, Action::Pending, Action::Pruned, Action::Cached, Action::Orphan];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Action::New => "new",
            Action::Cached => "cached",
            Action::Redo => "redo",
            Action::Pending => "pending",
            Action::Pruned => "pruned",
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
    /// What the results nearest to a new run say of it, once `explain` has asked them.
    pub change: Option<Change>,
}

impl Decision {
    fn new(action: Action, reason: impl Into<String>) -> Decision {
        Decision { action, reason: reason.into(), change: None }
    }

    /// The fields by which a new run is told from the results nearest to it.
    pub fn differences(&self) -> &[Difference] {
        match &self.change {
            Some(Change::Edited(differences) | Change::Added(differences)) => differences,
            _ => &[],
        }
    }
}

/// What the user asked for besides the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Run everything again.
    pub force: bool,
    /// Run invalid runs again.
    pub redo_invalid: bool,
    /// Run again what was given up.
    pub redo_given_up: bool,
}

/// What is on disk, ready to be asked.
#[derive(Debug, Default)]
pub struct OnDisk {
    by_id: HashMap<String, Listed>,
    /// By short id.
    deleted: HashMap<String, Deleted>,
    /// Short ids of the runs that the plan asks for.
    wanted: HashSet<String>,
    /// Laid out when the first new run asks for it.
    nearest: OnceCell<Nearest>,
}

impl OnDisk {
    /// What a listing found, seen from a plan with these runs.
    pub fn new(listed: Vec<Listed>, expansion: &Expansion) -> OnDisk {
        OnDisk {
            by_id: listed.into_iter().map(|run| (run.id.clone(), run)).collect(),
            deleted: HashMap::new(),
            wanted: expansion.runs.iter().map(|run| run.id.short()).collect(),
            nearest: OnceCell::new(),
        }
    }

    /// With the runs that were measured and whose folders are gone.
    pub fn with_deleted(mut self, deleted: Vec<Deleted>) -> OnDisk {
        self.deleted = deleted.into_iter().map(|run| (run.id.clone(), run)).collect();
        self
    }

    /// What is known of the run `id` whose folder is gone.
    pub fn deleted(&self, id: &RunId) -> Option<&Deleted> {
        self.deleted.get(&id.short())
    }

    /// The folder of run `id`, whole or not.
    pub fn get(&self, id: &RunId) -> Option<&Listed> {
        self.by_id.get(&id.short())
    }

    /// The committed, whole run `id`.
    pub fn record(&self, id: &RunId) -> Option<&RunRecord> {
        self.get(id).filter(|listed| listed.state == State::Whole)?.record.as_ref()
    }

    /// The records of all committed, whole runs, whoever asks for them.
    pub fn records(&self) -> impl Iterator<Item = &RunRecord> {
        self.by_id.values().filter(|listed| listed.state == State::Whole).filter_map(|listed| listed.record.as_ref())
    }

    /// Whether the entry of some whole run in the inventory is missing, of an earlier attempt, or damaged: the next writer
    /// mends that.
    pub fn wants_entries(&self) -> bool {
        self.by_id.values().any(Listed::wants_entry)
    }

    /// Committed runs on an endpoint for which `is_ours` says yes that no run of the plan asks for, sorted by id. A
    /// record knows the name of its endpoint and no plan, and a results folder may serve several plans; a folder whose
    /// record cannot be read is nobody's.
    pub fn orphans(&self, is_ours: impl Fn(&str) -> bool) -> Vec<&RunRecord> {
        let left = self.by_id.values().filter(|run| !self.wanted.contains(&run.id));
        let records = left.filter_map(|run| run.record.as_ref());
        let mut orphans: Vec<&RunRecord> = records.filter(|record| is_ours(&record.spec.endpoint.name)).collect();
        orphans.sort_by(|a, b| a.id.cmp(&b.id));
        orphans
    }

    fn nearest(&self) -> &Nearest {
        self.nearest.get_or_init(|| {
            let mut listed: Vec<&Listed> = self.by_id.values().collect();
            listed.sort_by(|a, b| a.id.cmp(&b.id));
            let known = |listed: &&Listed| listed.record.is_some();
            Nearest::new(listed.iter().copied().filter(known).filter_map(|listed| {
                let record = listed.record.as_ref()?;
                Some(Known { spec: &record.spec, wanted: self.wanted.contains(&listed.id) })
            }))
        })
    }
}

/// Decides about one run. `is_invalid` says whether a committed run's verdict is invalid; it is asked only when that
/// matters.
pub fn decide(run: &PlannedRun, disk: &OnDisk, wishes: Wishes, is_invalid: &dyn Fn(&RunRecord) -> bool) -> Decision {
    let Some(listed) = disk.get(&run.id) else {
        let said = disk.deleted(&run.id).map_or_else(|| "never committed".to_owned(), Deleted::said);
        return Decision::new(Action::New, said);
    };
    let record = match (&listed.state, &listed.record) {
        // Nobody knows whether it is whole, so it is replaced only where that is asked for.
        (State::Unreadable(reason), _) if !wishes.force => {
            return Decision::new(Action::Pruned, format!("its result is left alone and cannot be used: {reason}"));
        }
        (State::Unreadable(_), _) => return Decision::new(Action::Redo, "forced"),
        (State::Corrupt(reason), _) => return Decision::new(Action::Redo, format!("corrupt: {reason}")),
        (State::Whole, None) => return Decision::new(Action::Redo, "corrupt: run.json cannot be read"),
        (State::Whole, Some(record)) => record,
    };
    if !describes(record, run) {
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

/// Whether the record is that of the run. Equal specs have equal ids, and comparing is cheaper than hashing; specs that
/// differ in their names alone have equal ids, too.
fn describes(record: &RunRecord, run: &PlannedRun) -> bool {
    record.id == run.id.to_string() && (record.spec == *run.spec || RunId::of(&record.spec) == run.id)
}

/// Adds to a new run's decision what the results nearest to it say of it; `asked` runs are explained in all.
pub fn explain(decision: &mut Decision, run: &PlannedRun, disk: &OnDisk, asked: usize) {
    // Why a run is new that was there already needs no other result.
    if decision.action != Action::New || disk.deleted(&run.id).is_some() {
        return;
    }
    decision.change = disk.nearest().find(&run.spec, asked);
    // Another id of an equal spec: only the version of the measurement differs, and that is the program's.
    if decision.change == Some(Change::Meaning) {
        decision.reason = "its result is of an older sweepline, whose numbers mean something else".to_owned();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

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
        let (dir, entered) = (PathBuf::new(), crate::store::Entered::Same);
        Listed { id: run.id.short(), dir, state: State::Whole, record: Some(record), entered }
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
        assert_eq!(decided(run, &on_disk(vec![closed()]), redo, true).0, Action::Pruned, "what nobody can read stays");
        assert_eq!(decided(run, &on_disk(vec![closed()]), force, true).0, Action::Redo);
        let gone = Deleted { id: run.id.short(), entry: Err("cut".into()) };
        let (action, reason) = decided(run, &on_disk(vec![]).with_deleted(vec![gone]), none, false);
        assert!(action == Action::New && reason.contains("deleted since"), "{reason}");
        let old = Listed { id: "0".repeat(16), ..committed(run) };
        let mut new = Decision::new(Action::New, "never committed");
        explain(&mut new, run, &on_disk(vec![old]), 1);
        assert!(new.reason.contains("an older sweepline") && new.differences().is_empty(), "{}", new.reason);
        let other = Listed { id: run.id.short(), ..committed(&runs(&[6]).runs[0]) };
        let (action, reason) = decided(run, &on_disk(vec![other]), none, false);
        assert_eq!(action, Action::Redo);
        assert!(reason.starts_with("corrupt: run.json describes another run"), "{reason}");
    }

    /// One field that differs.
    fn one(field: &str, old: impl ToString, new: impl ToString) -> Difference {
        Difference { field: field.to_owned(), old: Some(old.to_string()), new: Some(new.to_string()) }
    }

    /// What the nearest of `old` say of the one new run of `new`.
    fn change(old: &[&Expansion], new: &Expansion) -> Option<Change> {
        let disk = OnDisk::new(old.iter().flat_map(|old| &old.runs).map(committed).collect(), new);
        let run = new.runs.iter().find(|run| disk.get(&run.id).is_none()).expect("a new run");
        let mut decision = decide(run, &disk, Wishes::default(), &|_| false);
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
        // A rate that came beside others is no edit of theirs.
        assert_eq!(change(&[&runs(&[5])], &runs(&[5, 6])), Some(Change::Added(vec![one("load.qps", 5, 6)])));
        // Two results of former plans are one field away: of the cell with the same names it was the other field.
        let (a, b) = (seeded(1, &[5]), seeded(2, &[6]));
        assert_eq!(change(&[&a, &b], &seeded(2, &[5])), Some(Change::Edited(vec![one("seed", 1, 2)])));
        // Which of two rates became the third nobody knows; that it was the rate is common to both.
        let told = change(&[&runs(&[5, 6])], &runs(&[7]));
        assert_eq!(told, Some(Change::Edited(vec![one("load.qps", "5 or 6", 7)])));
        // With too many differences it is another run.
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
            prop_assert_eq!(disk.orphans(|endpoint| endpoint == "e").len(), 1);
            prop_assert_eq!(disk.orphans(|endpoint| endpoint == "f").len(), 0);
            for run in &after.runs {
                let mut decision = decide(run, &disk, Wishes::default(), &|_| false);
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
