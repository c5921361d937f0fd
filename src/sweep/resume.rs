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
        let text: Vec<String> = changed.iter().map(Difference::to_string).collect();
        decision.reason = format!("changed: {}", text.join(", "));
        decision.changed = changed;
    }
}
