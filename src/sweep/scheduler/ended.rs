//! Tracks which runs are skipped because they are no longer needed.

use std::collections::{HashMap, HashSet};

use petgraph::graph::NodeIndex;

use crate::expand::{CellEnd, Expansion, PlannedRun, RunId, Series};
use crate::graph::{Graph, Node};

/// A function that decides from the existing results when each cell of a series ends; `None` for a cell
/// that continues. If the second argument returns true for a run, the run still has to be measured, even if
/// a result exists.
pub(crate) type EndsOf<'a> = &'a dyn Fn(&Series, &dyn Fn(&PlannedRun) -> bool) -> Vec<Option<CellEnd>>;

/// A function that decides from the results so far whether a run that is about to begin is skipped because
/// of the budget. Returns the reason, or `None` if the run is not skipped.
pub(crate) type OverBudget<'a> = &'a dyn Fn(&PlannedRun) -> Option<String>;

/// The state that determines which runs are skipped because they are no longer needed.
#[derive(Debug, Default)]
pub(super) struct EarlyEnds {
    /// For each run to execute: its position in the plan, and its node.
    pub(super) nodes: HashMap<RunId, (usize, NodeIndex)>,
    /// For each run to execute: the number of sweeps that still need it.
    pub(super) wanted: HashMap<RunId, usize>,
    /// Runs that were committed or given up in this invocation.
    pub(super) ended: HashSet<RunId>,
    /// Cells that have ended, each as the position of its series and its position in the series.
    pub(super) known: HashSet<(usize, usize)>,
    /// Positions of the skipped runs in the plan.
    pub(super) left_out: HashSet<usize>,
}

impl EarlyEnds {
    /// Creates the state without any skipped runs.
    pub(super) fn of(expansion: &Expansion, todo: &[bool], graph: &Graph) -> EarlyEnds {
        let mut ends = EarlyEnds::default();
        if expansion.series.is_empty() {
            return ends;
        }
        for node in graph.nodes() {
            if let Node::Run(at) = graph.node(node) {
                ends.nodes.insert(expansion.runs[*at].id, (*at, node));
            }
        }
        for (run, _) in expansion.runs.iter().zip(todo).filter(|(_, todo)| **todo) {
            *ends.wanted.entry(run.id).or_default() += 1;
        }
        ends
    }

    /// Whether the run at this position is skipped.
    pub(super) fn leaves_out(&self, at: usize) -> bool {
        self.left_out.contains(&at)
    }

    /// Records that a sweep no longer needs a run, and returns the number of sweeps that still need it.
    pub(super) fn one_less_wants(&mut self, id: &RunId) -> usize {
        let count = self.wanted.entry(*id).or_default();
        *count = count.saturating_sub(1);
        *count
    }
}
