//! Which runs are left out because their cells have ended.

use std::collections::{HashMap, HashSet};

use petgraph::graph::NodeIndex;

use crate::expand::{CellEnd, Expansion, PlannedRun, RunId, Series};
use crate::graph::{Graph, Node};

/// When the cells of a series end, by what is there; a run of which the second argument says so has yet to be measured, whatever is there.
pub(crate) type EndsOf<'a> = &'a dyn Fn(&Series, &dyn Fn(&PlannedRun) -> bool) -> Vec<Option<CellEnd>>;

/// Why the budget leaves out a run that is about to begin, by what was measured until then; none where it does not.
pub(crate) type OverBudget<'a> = &'a dyn Fn(&PlannedRun) -> Option<String>;

/// Runs that are left out because their cells have ended.
#[derive(Debug, Default)]
pub(super) struct EarlyEnds {
    /// For each run to do its position and its node.
    pub(super) nodes: HashMap<RunId, (usize, NodeIndex)>,
    /// How many sweeps still ask for each run to do.
    pub(super) wanted: HashMap<RunId, usize>,
    /// Runs that have ended for good in this invocation.
    pub(super) ended: HashSet<RunId>,
    /// Cells whose end is known, as positions of series and cell.
    pub(super) known: HashSet<(usize, usize)>,
    /// Runs that are left out, by position.
    pub(super) left_out: HashSet<usize>,
}

impl EarlyEnds {
    /// None yet.
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

    /// Whether the run at this position is left out.
    pub(super) fn leaves_out(&self, at: usize) -> bool {
        self.left_out.contains(&at)
    }

    /// One sweep less asks for a run; gives how many do.
    pub(super) fn one_less_wants(&mut self, id: &RunId) -> usize {
        let count = self.wanted.entry(*id).or_default();
        *count = count.saturating_sub(1);
        *count
    }
}
