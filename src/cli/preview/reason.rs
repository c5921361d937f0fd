//! Decisions in words that name the place of the edit which made them.

use std::cell::RefCell;
use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Difference, PlannedRun, origin};
use crate::plan::Step;
use crate::sweep::nearest::Change;
use crate::sweep::resume::Decision;

use super::super::workspace::Workspace;

/// A field by which a run is told from the result nearest to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Changed {
    /// The field of the run's identity, like load.qps.
    pub field: String,
    /// Its value in the nearest result; null where it is not set.
    pub old: Option<String>,
    /// Its value in the plan; null where it is not set.
    pub new: Option<String>,
    /// Where the plan gives it, as file:line:column.
    pub place: Option<String>,
}

/// Where the plan gives values. Each place is looked up once: thousands of runs share it.
pub(crate) struct Places<'a> {
    workspace: &'a Workspace,
    known: RefCell<HashMap<Vec<Step>, Option<String>>>,
}

impl<'a> Places<'a> {
    /// Of the workspace's plan.
    pub(crate) fn new(workspace: &'a Workspace) -> Places<'a> {
        Places { workspace, known: RefCell::default() }
    }

    /// Where `field` of `run` gets its value.
    pub(crate) fn of_field(&self, run: &PlannedRun, field: &str) -> Option<String> {
        self.at(origin(self.workspace.plan(), run, field))
    }

    /// Where a sweep begins.
    pub(crate) fn of_sweep(&self, sweep: &str) -> Option<String> {
        self.at(vec!["sweeps".into(), sweep.into()])
    }

    fn at(&self, path: Vec<Step>) -> Option<String> {
        let mut known = self.known.borrow_mut();
        let look_up = |path: &Vec<Step>| self.workspace.loaded.origin(path).map(|origin| origin.to_string());
        known.entry(path).or_insert_with_key(look_up).clone()
    }
}

/// The fields by which a new run is told from the result nearest to it, with their places.
pub(crate) fn changes(decision: &Decision, run: &PlannedRun, places: &Places) -> Vec<Changed> {
    let changed = |Difference { field, old, new }: &Difference| Changed {
        field: field.clone(),
        old: old.clone(),
        new: new.clone(),
        place: places.of_field(run, field),
    };
    decision.differences().iter().map(changed).collect()
}

/// The reason of a decision; `changes` are its fields.
pub(crate) fn reason(decision: &Decision, changes: &[Changed]) -> String {
    let all = |one: &dyn Fn(&Changed) -> String| changes.iter().map(one).collect::<Vec<_>>().join(", ");
    match &decision.change {
        Some(Change::Edited(_)) => format!("changed against the nearest result: {}", all(&Changed::edit)),
        Some(Change::Added(_)) => format!("added: {}", all(&Changed::addition)),
        Some(Change::Unsure(fields)) => {
            format!("{}; the nearest results differ in {}", decision.reason, fields.join(" or in "))
        }
        Some(Change::Meaning) | None => decision.reason.clone(),
    }
}

impl Changed {
    /// `load.qps: 5 → 6 (plan.yaml:12:7)`.
    fn edit(&self) -> String {
        let Changed { field, old, new, .. } = self;
        format!("{}{}", Difference { field: field.clone(), old: old.clone(), new: new.clone() }, self.in_brackets())
    }

    /// `load.qps: 6 (plan.yaml:12:7) beside 5`.
    fn addition(&self) -> String {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        format!("{}: {}{} beside {}", self.field, side(&self.new), self.in_brackets(), side(&self.old))
    }

    fn in_brackets(&self) -> String {
        self.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default()
    }
}
