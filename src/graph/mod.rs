//! RunSpecs → Graph: what waits for what.
//!
//! The server of an endpoint that sweepline starts is started before the endpoint is probed, the endpoint is probed before its runs,
//! and a sweep that comes `after` another waits at that one's gate. Only what is still to do is in the graph, so a plan
//! whose runs are all there has no probe, and sends nothing. Built, the graph never changes; a [`Walk`] goes through it.

mod build;
mod cells;
pub mod drawing;
pub mod drawn;
pub mod render;
mod servers;
pub mod walk;

#[cfg(test)]
mod tests;

use crate::expand::Expansion;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};

pub use build::{GraphError, build};
pub use walk::{Outcome, SkipReason, Skipped, Walk};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// Start the server of an endpoint: the embedded one, or one that the plan launches, in the place of the one that is up.
    Serve {
        /// Name of the endpoint.
        endpoint: String,
        /// The first run that needs it, as its position in `Expansion.runs`.
        run: usize,
    },
    /// Ask an endpoint whether it is there and what it is.
    Probe {
        /// Name of the endpoint.
        endpoint: String,
        /// The first run behind it.
        run: usize,
    },
    /// Execute a run: its position in `Expansion.runs`. A run that several sweeps share is one node.
    Run(usize),
    /// Everything of a sweep has ended, well or not: what comes after it may start.
    Gate {
        /// Name of the sweep.
        sweep: String,
    },
}

/// When a node's turn comes among those that are ready: position of the run it belongs to, then Serve, Probe, Run, Gate.
pub(crate) type Rank = (usize, u8);

/// A node with what a walk needs to know of it.
#[derive(Debug, Clone)]
struct Planned {
    node: Node,
    rank: Rank,
    /// What it occupies while it is under way; gates occupy nothing.
    resource: Option<String>,
}

/// What is to do and what waits for what. Free of circles.
#[derive(Debug, Clone)]
pub struct Graph {
    inner: DiGraph<Planned, ()>,
}

impl Graph {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.inner.node_count()
    }

    /// How often servers that the plan launches are started, for runs of which endpoints: an endpoint once for each start.
    pub fn launches<'a>(&'a self, expansion: &'a Expansion) -> impl Iterator<Item = &'a str> {
        self.nodes().into_iter().filter_map(|at| match self.node(at) {
            Node::Serve { endpoint, run } if expansion.runs[*run].spec.endpoint.launch.is_some() => {
                Some(endpoint.as_str())
            }
            _ => None,
        })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What `at` stands for.
    pub fn node(&self, at: NodeIndex) -> &Node {
        &self.inner[at].node
    }

    /// What `at` occupies while it is under way: two nodes of one resource never overlap. `None` for a gate.
    pub fn resource(&self, at: NodeIndex) -> Option<&str> {
        self.inner[at].resource.as_deref()
    }

    /// All nodes, in the order of their runs.
    pub fn nodes(&self) -> Vec<NodeIndex> {
        let mut nodes: Vec<NodeIndex> = self.inner.node_indices().collect();
        nodes.sort_by_key(|at| self.rank(*at));
        nodes
    }

    /// The nodes that must end before `at` may start.
    pub fn before(&self, at: NodeIndex) -> impl Iterator<Item = NodeIndex> {
        self.inner.neighbors_directed(at, Direction::Incoming)
    }

    /// The nodes that wait for `at`.
    pub fn after(&self, at: NodeIndex) -> impl Iterator<Item = NodeIndex> {
        self.inner.neighbors_directed(at, Direction::Outgoing)
    }

    fn rank(&self, at: NodeIndex) -> Rank {
        self.inner[at].rank
    }
}
