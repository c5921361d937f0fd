//! Decisions as text, each with the place of the edit that caused it.

use std::cell::RefCell;
use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Difference, PlannedRun, origin};
use crate::plan::Step;
use crate::sweep::nearest::Change;
use crate::sweep::resume::Decision;

use super::super::workspace::Workspace;

/// A field in which a run differs from the closest result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Changed {
    /// The field of the run's identity, like load.qps.
    pub field: String,
    /// The value in the closest result; null if it is not set.
    pub old: Option<String>,
    /// The value in the plan; null if it is not set.
    pub new: Option<String>,
    /// Where the plan sets the field, as file:line:column.
    pub place: Option<String>,
}

/// The places of values in the plan. Each place is looked up once, because thousands of runs may
/// share it.
pub(crate) struct Places<'a> {
    workspace: &'a Workspace,
    known: RefCell<HashMap<Vec<Step>, Option<String>>>,
}

impl<'a> Places<'a> {
    /// Creates the lookup for the workspace's plan.
    pub(crate) fn new(workspace: &'a Workspace) -> Places<'a> {
        Places { workspace, known: RefCell::default() }
    }

    /// Returns the place in the plan that sets `field` of `run`; `None` if it is unknown.
    pub(crate) fn of_field(&self, run: &PlannedRun, field: &str) -> Option<String> {
        self.at(origin(self.workspace.plan(), run, field))
    }

    /// Returns the place where a sweep begins.
    pub(crate) fn of_sweep(&self, sweep: &str) -> Option<String> {
        self.at(vec!["sweeps".into(), sweep.into()])
    }

    fn at(&self, path: Vec<Step>) -> Option<String> {
        let mut known = self.known.borrow_mut();
        let look_up = |path: &Vec<Step>| self.workspace.loaded.origin(path).map(|origin| origin.to_string());
        known.entry(path).or_insert_with_key(look_up).clone()
    }
}

/// Returns the fields in which a new run differs from the closest result, with their places.
pub(crate) fn changes(decision: &Decision, run: &PlannedRun, places: &Places) -> Vec<Changed> {
    let changed = |Difference { field, old, new }: &Difference| Changed {
        field: field.clone(),
        old: old.clone(),
        new: new.clone(),
        place: places.of_field(run, field),
    };
    decision.differences().iter().map(changed).collect()
}

/// Returns the reason for a decision; `changes` are the fields that differ.
pub(crate) fn reason(decision: &Decision, changes: &[Changed]) -> String {
    let all = |one: &dyn Fn(&Changed) -> String| changes.iter().map(one).collect::<Vec<_>>().join(", ");
    match &decision.change {
        Some(Change::Edited(_)) => format!("changed from the nearest result: {}", all(&Changed::edit)),
        Some(Change::Added(_)) => format!("added: {}", all(&Changed::addition)),
        Some(Change::Unsure(fields)) => {
            format!("{}; the nearest results differ in {}", decision.reason, fields.join(" or in "))
        }
        Some(Change::Meaning) | None => decision.reason.clone(),
    }
}

impl Changed {
    /// Returns the edit: `load.qps: 5 → 6 (plan.yaml:12:7)`.
    fn edit(&self) -> String {
        let Changed { field, old, new, .. } = self;
        format!("{}{}", Difference { field: field.clone(), old: old.clone(), new: new.clone() }, self.in_brackets())
    }

    /// Returns the addition: `load.qps: 6 (plan.yaml:12:7) next to 5`.
    fn addition(&self) -> String {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        format!("{}: {}{} next to {}", self.field, side(&self.new), self.in_brackets(), side(&self.old))
    }

    fn in_brackets(&self) -> String {
        self.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default()
    }
}
