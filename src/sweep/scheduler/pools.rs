//! Tracks the runs that the nodes of searches and ladders represent.

use std::collections::{HashMap, HashSet};

use petgraph::graph::NodeIndex;

use crate::expand::Pool;
use crate::sweep::choose::Chosen;

/// The pools of a sweep, and the function that chooses their next members.
pub(crate) struct Choices<'a> {
    /// For each pool of the expansion: the positions of its members among the runs.
    pub(crate) places: Vec<Vec<usize>>,
    /// For each run: whether the user selected it. A pool that requests a run that was not selected does
    /// not continue.
    pub(crate) picked: Vec<bool>,
    /// The function that returns the state of a pool, with the member that is requested next.
    pub(crate) choose: &'a dyn Fn(&Pool) -> Chosen,
}

impl Choices<'_> {
    /// Returns the state, as text, of the first pool that contains the run at this position; `None` if
    /// there is none.
    pub(super) fn standing(&self, run: usize, pools: &[Pool]) -> Option<String> {
        let pool = self.places.iter().position(|places| places.contains(&run))?;
        Some((self.choose)(&pools[pool]).to_string())
    }
}

/// The state of the nodes that represent runs of pools.
#[derive(Debug, Default)]
pub(super) struct Pools {
    /// For each node: the position of the run that the node currently represents.
    pub(super) runs: HashMap<NodeIndex, usize>,
    /// For each node: the pools that it continues, one after the other. There are several pools if they
    /// requested the same run.
    pub(super) of_node: HashMap<NodeIndex, Vec<usize>>,
    /// Nodes whose next run is known, but that are still waiting for the end of the pause after the last
    /// run.
    waiting: HashSet<NodeIndex>,
    /// For each pool: the state that was last reported.
    pub(super) told: HashMap<usize, String>,
    /// The number that the next chosen run gets.
    pub(super) next_number: usize,
}

impl Pools {
    /// Creates the state without chosen runs. `numbered` is the number of runs that already have numbers.
    pub(super) fn behind(numbered: usize) -> Pools {
        Pools { next_number: numbered + 1, ..Pools::default() }
    }

    /// Returns the position of the chosen run that a node represents; `None` if the node still represents
    /// its run in the graph.
    pub(super) fn run(&self, node: NodeIndex) -> Option<usize> {
        self.runs.get(&node).copied()
    }

    /// Records that a node continues with its next run after the pause.
    pub(super) fn goes_on(&mut self, node: NodeIndex) {
        self.waiting.insert(node);
    }

    /// Returns whether a node continues with its next run now that the pause is over, and then
    /// clears this state.
    pub(super) fn went_on(&mut self, node: NodeIndex) -> bool {
        self.waiting.remove(&node)
    }
}
