//! Builds a graph of dependencies from RunSpecs.
//!
//! A server that sweepline starts is started before its endpoint is probed. An endpoint is probed
//! before its runs, and a sweep that comes `after` another sweep waits at that sweep's gate. The
//! graph contains only work to be done, so a plan whose runs are all done has no probe and sends
//! nothing. Once built, the graph never changes; a [`Walk`] traverses it.

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

/// A unit of work.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// Start the server of an endpoint: the embedded mock, or a server that the plan launches. A launched
    /// server replaces the one that is running on the same resource.
    Serve {
        /// Name of the endpoint.
        endpoint: String,
        /// The first run that needs the server, given by its position in `Expansion.runs`.
        run: usize,
    },
    /// Check that an endpoint is available, and identify it.
    Probe {
        /// Name of the endpoint.
        endpoint: String,
        /// The first run after the probe, given by its position in `Expansion.runs`.
        run: usize,
    },
    /// Execute a run, given by its position in `Expansion.runs`. A run that several sweeps share is one
    /// node.
    Run(usize),
    /// Wait until all runs of a sweep have ended, successfully or not. Sweeps that come `after` it may start
    /// then.
    Gate {
        /// Name of the sweep.
        sweep: String,
    },
}

/// The priority of a node among the nodes that are ready; the lowest comes first. It consists of the position
/// of the node's run, and a number for the kind of node in the order Serve, Probe, Run, Gate.
pub(crate) type Rank = (usize, u8);

/// A node, with the information that a walk needs.
#[derive(Debug, Clone)]
struct Planned {
    node: Node,
    rank: Rank,
    /// The resource that the node occupies while it runs; `None` for a gate.
    resource: Option<String>,
}

/// The units of work and their dependencies, which contain no cycles.
#[derive(Debug, Clone)]
pub struct Graph {
    inner: DiGraph<Planned, ()>,
}

impl Graph {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.inner.node_count()
    }

    /// The starts of servers that the plan launches. Each is given by the first run that needs the server, as a
    /// position in `Expansion.runs`.
    pub fn launches<'a>(&'a self, expansion: &'a Expansion) -> impl Iterator<Item = usize> {
        self.nodes().into_iter().filter_map(|at| match self.node(at) {
            Node::Serve { run, .. } if expansion.runs[*run].spec.endpoint.launch.is_some() => Some(*run),
            _ => None,
        })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The node at `at`.
    pub fn node(&self, at: NodeIndex) -> &Node {
        &self.inner[at].node
    }

    /// The resource that the node at `at` occupies while it runs; `None` for a gate. Two nodes with the same
    /// resource never overlap.
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
