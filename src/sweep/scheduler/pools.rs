//! What the nodes of searches and ladders stand for.

use std::collections::{HashMap, HashSet};

use petgraph::graph::NodeIndex;

use crate::expand::Pool;
use crate::sweep::choose::Chosen;

/// The pools of a sweep, and what decides which of their members come next.
pub(crate) struct Choices<'a> {
    /// For each pool of the expansion the positions of its members among the runs.
    pub(crate) places: Vec<Vec<usize>>,
    /// For each run whether the user picked it: a pool that asks for another one stays where it is.
    pub(crate) picked: Vec<bool>,
    /// How a pool stands.
    pub(crate) choose: &'a dyn Fn(&Pool) -> Chosen,
}

impl Choices<'_> {
    /// How the first pool stands that may ask for the run at this position; none where none may.
    pub(super) fn standing(&self, run: usize, pools: &[Pool]) -> Option<String> {
        let pool = self.places.iter().position(|places| places.contains(&run))?;
        Some((self.choose)(&pools[pool]).to_string())
    }
}

/// What the nodes of pools stand for.
#[derive(Debug, Default)]
pub(super) struct Pools {
    /// The run that a node stands for now.
    pub(super) runs: HashMap<NodeIndex, usize>,
    /// The pools that a node goes on with, one after the other: several where they asked for the same run.
    pub(super) of_node: HashMap<NodeIndex, Vec<usize>>,
    /// Nodes whose next run is known, and that wait for the pause after the last.
    waiting: HashSet<NodeIndex>,
    /// What was told last of how each pool stands.
    pub(super) told: HashMap<usize, String>,
    /// The number of the next run that is chosen.
    pub(super) next_number: usize,
}

impl Pools {
    /// None yet; so many runs were numbered.
    pub(super) fn behind(numbered: usize) -> Pools {
        Pools { next_number: numbered + 1, ..Pools::default() }
    }

    /// The run that the node stands for; none of a node that stands for what is in the graph.
    pub(super) fn run(&self, node: NodeIndex) -> Option<usize> {
        self.runs.get(&node).copied()
    }

    /// The node goes on when the pause after its run is over.
    pub(super) fn goes_on(&mut self, node: NodeIndex) {
        self.waiting.insert(node);
    }

    /// Whether the node waited for that pause; it does no longer.
    pub(super) fn went_on(&mut self, node: NodeIndex) -> bool {
        self.waiting.remove(&node)
    }
}
