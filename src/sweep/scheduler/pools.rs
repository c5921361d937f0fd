//! The runs that the nodes of searches and ladders represent.

use std::collections::{HashMap, HashSet};

use petgraph::graph::NodeIndex;

use crate::expand::Pool;
use crate::sweep::choose::Chosen;

/// The pools of a sweep, and the function that decides which of their members come next.
pub(crate) struct Choices<'a> {
    /// For each pool of the expansion, the positions of its members among the runs.
    pub(crate) places: Vec<Vec<usize>>,
    /// For each run, whether the user selected it. A pool that requests an unselected run stops
    /// there.
    pub(crate) picked: Vec<bool>,
    /// Returns the state of a pool.
    pub(crate) choose: &'a dyn Fn(&Pool) -> Chosen,
}

impl Choices<'_> {
    /// Returns the state of the first pool that may request the run at this position; `None` if there is
    /// none.
    pub(super) fn standing(&self, run: usize, pools: &[Pool]) -> Option<String> {
        let pool = self.places.iter().position(|places| places.contains(&run))?;
        Some((self.choose)(&pools[pool]).to_string())
    }
}

/// The runs that the nodes of pools currently represent.
#[derive(Debug, Default)]
pub(super) struct Pools {
    /// The run that each node represents now.
    pub(super) runs: HashMap<NodeIndex, usize>,
    /// The pools that each node continues, one after the other; there are several if they requested
    /// the same run.
    pub(super) of_node: HashMap<NodeIndex, Vec<usize>>,
    /// Nodes whose next run is known and that are waiting for the pause after the last run.
    waiting: HashSet<NodeIndex>,
    /// The last reported state of each pool.
    pub(super) told: HashMap<usize, String>,
    /// The number of the next chosen run.
    pub(super) next_number: usize,
}

impl Pools {
    /// Creates the state without chosen runs; `numbered` runs already have numbers.
    pub(super) fn behind(numbered: usize) -> Pools {
        Pools { next_number: numbered + 1, ..Pools::default() }
    }

    /// Returns the run that the node represents; `None` if it represents its run in the graph.
    pub(super) fn run(&self, node: NodeIndex) -> Option<usize> {
        self.runs.get(&node).copied()
    }

    /// Records that the node continues when the pause after its run is over.
    pub(super) fn goes_on(&mut self, node: NodeIndex) {
        self.waiting.insert(node);
    }

    /// Returns whether the node was waiting for this pause, and ends the wait.
    pub(super) fn went_on(&mut self, node: NodeIndex) -> bool {
        self.waiting.remove(&node)
    }
}
