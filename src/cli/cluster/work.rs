//! What is to do of an element, by what lies in the results folder.

use std::collections::BTreeSet;

use crate::cli::workspace::Workspace;
use crate::expand::Waits;
use crate::submit::Element;
use crate::sweep::resume::Wishes;

/// How far the runs of an element are. A run that sweeps share counts once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// The short ids of the runs that are to do.
    pub(super) todo: BTreeSet<String>,
    /// How many are not.
    pub(super) done: usize,
    /// How many have no id yet, for an earlier sweep has not answered.
    pub(super) waiting: usize,
}

impl Work {
    /// What is to do of an element.
    pub(super) fn of(workspace: &Workspace, element: &Element) -> Work {
        let (mut todo, mut done) = (BTreeSet::new(), BTreeSet::new());
        for run in &workspace.expansion.runs {
            if element.has(&run.sweep, &run.spec.endpoint.name) {
                let is_work = workspace.decide(run, Wishes::default()).action.is_work();
                if is_work {
                    todo.insert(run.id.short())
                } else {
                    done.insert(run.id.short())
                };
            }
        }
        let cells = workspace.expansion.pending.iter().filter(|cell| cell.state == Waits::Pending);
        let waiting = cells.filter(|cell| element.has_cell(cell)).map(|cell| cell.repeats as usize).sum();
        // A sweep that is left out asks for nothing that another one does.
        done.retain(|id| !todo.contains(id));
        Work { todo, done: done.len(), waiting }
    }

    /// Whether there is something to do, now or when an earlier sweep has answered.
    pub(super) fn is_any(&self) -> bool {
        !self.todo.is_empty() || self.waiting > 0
    }

    /// How many runs there are in all.
    pub(super) fn all(&self) -> usize {
        self.todo.len() + self.done + self.waiting
    }
}
