//! Tracks which runs are skipped because their cells have ended.

use std::collections::{HashMap, HashSet};

use petgraph::graph::NodeIndex;

use crate::expand::{CellEnd, Expansion, PlannedRun, RunId, Series};
use crate::graph::{Graph, Node};

/// Returns when the cells of a series end, based on the existing results. If the second argument returns
/// true for a run, that run has yet to be measured, even if a result exists.
pub(crate) type EndsOf<'a> = &'a dyn Fn(&Series, &dyn Fn(&PlannedRun) -> bool) -> Vec<Option<CellEnd>>;

/// Returns why the budget skips a run that is about to begin, based on the measurements so far;
/// `None` if the budget does not skip it.
pub(crate) type OverBudget<'a> = &'a dyn Fn(&PlannedRun) -> Option<String>;

/// The runs that are skipped because their cells have ended.
#[derive(Debug, Default)]
pub(super) struct EarlyEnds {
    /// Position and node of each run to do.
    pub(super) nodes: HashMap<RunId, (usize, NodeIndex)>,
    /// Number of sweeps that still request each run to do.
    pub(super) wanted: HashMap<RunId, usize>,
    /// Runs that have ended for good in this invocation.
    pub(super) ended: HashSet<RunId>,
    /// Cells whose end is known, as positions of series and cell.
    pub(super) known: HashSet<(usize, usize)>,
    /// Skipped runs, by position.
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

    /// Records that one sweep fewer requests a run, and returns the number of sweeps that still
    /// request it.
    pub(super) fn one_less_wants(&mut self, id: &RunId) -> usize {
        let count = self.wanted.entry(*id).or_default();
        *count = count.saturating_sub(1);
        *count
    }
}
