//! The open runs of an element, according to the results folder.

use std::collections::BTreeSet;

use crate::cli::workspace::Workspace;
use crate::expand::Waits;
use crate::submit::Element;
use crate::sweep::resume::Wishes;

/// Progress of the runs of an element. A run that several sweeps share is counted once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// The short ids of the open runs.
    pub(super) todo: BTreeSet<String>,
    /// Number of runs that are not open.
    pub(super) done: usize,
    /// Number of runs without an id, because they depend on the result of an earlier sweep.
    pub(super) waiting: usize,
}

impl Work {
    /// Determines the open runs of an element.
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
        // A skipped sweep requests only runs that another sweep also requests.
        done.retain(|id| !todo.contains(id));
        Work { todo, done: done.len(), waiting }
    }

    /// Whether there are open runs, now or once an earlier sweep has its result.
    pub(super) fn is_any(&self) -> bool {
        !self.todo.is_empty() || self.waiting > 0
    }

    /// Returns the total number of runs.
    pub(super) fn all(&self) -> usize {
        self.todo.len() + self.done + self.waiting
    }
}
