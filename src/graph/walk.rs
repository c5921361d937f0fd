//! Traverses a graph: determines the next node and the consequences when a node ends. Uses no clock and
//! no I/O.
//!
//! The caller calls [`Walk::next_node`] until it returns `None`, executes the returned nodes, and reports the
//! end of each one to [`Walk::done`]. A pause after a run is part of the run: report the run as done only
//! after the pause, because the resource stays occupied until then.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use petgraph::graph::NodeIndex;

use super::{Graph, Node, Rank};

/// How a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The node succeeded.
    Ok,
    /// The node failed.
    Failed,
    /// The caller skipped the node, so it was not executed.
    Skipped,
}

/// Why nodes were skipped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SkipReason {
    /// The endpoint's server did not start.
    NotStarted {
        /// Name of the endpoint.
        endpoint: String,
    },
    /// The endpoint was not ready in time.
    NotReady {
        /// Name of the endpoint.
        endpoint: String,
    },
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::NotStarted { endpoint } => write!(f, "the server of endpoint `{endpoint}` did not start"),
            SkipReason::NotReady { endpoint } => write!(f, "endpoint `{endpoint}` is not ready"),
        }
    }
}

/// A node that will not be returned, because another node failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The node: a run, or the probe after a server start that failed.
    pub node: NodeIndex,
    /// Why the node is skipped.
    pub reason: SkipReason,
}

/// A walk through a graph. Each node is either returned or skipped.
#[derive(Debug, Clone)]
pub struct Walk<'g> {
    graph: &'g Graph,
    jobs: usize,
    /// For each node, the number of nodes that it still waits for.
    waits: Vec<usize>,
    /// Nodes that no longer wait for another node, but have not been returned yet.
    ready: BTreeSet<(Rank, NodeIndex)>,
    running: HashSet<NodeIndex>,
    /// Resources occupied by running nodes.
    taken: HashSet<&'g str>,
    /// Running nodes that wait for a server. They occupy no job in the meantime, but their resources
    /// stay reserved.
    waiting: HashSet<NodeIndex>,
    ended: HashSet<NodeIndex>,
}

impl<'g> Walk<'g> {
    /// Creates a walk with at most `jobs` running nodes at once (not counting gates); 0 means 1.
    ///
    /// Probes and server starts also count as jobs, so with `jobs` = 1, nothing disturbs a run that is being
    /// measured.
    pub fn new(graph: &'g Graph, jobs: usize) -> Walk<'g> {
        let waits: Vec<usize> = graph.inner.node_indices().map(|at| graph.before(at).count()).collect();
        let ready = graph.inner.node_indices().filter(|at| waits[at.index()] == 0).map(|at| (graph.rank(at), at));
        Walk {
            graph,
            jobs: jobs.max(1),
            ready: ready.collect(),
            waits,
            running: HashSet::new(),
            taken: HashSet::new(),
            waiting: HashSet::new(),
            ended: HashSet::new(),
        }
    }

    /// The next node to start, in execution order; `None` if nothing can start at the moment.
    pub fn next_node(&mut self) -> Option<NodeIndex> {
        let next = *self.ready.iter().find(|(_, at)| self.may_start(*at))?;
        self.ready.remove(&next);
        let (_, at) = next;
        self.running.insert(at);
        self.taken.extend(self.graph.resource(at));
        Some(at)
    }

    fn may_start(&self, at: NodeIndex) -> bool {
        let Some(resource) = self.graph.resource(at) else { return true };
        let is_kept = |waiting: &NodeIndex| self.graph.resource(*waiting) == Some(resource);
        self.taken.len() < self.jobs && !self.taken.contains(resource) && !self.waiting.iter().any(is_kept)
    }

    /// Marks a running node as waiting for its server. Other nodes may run in the meantime, but not
    /// on its resource. Has no effect on a node that is already waiting.
    pub fn wait(&mut self, node: NodeIndex) {
        if self.running.remove(&node) {
            self.waiting.insert(node);
            if let Some(resource) = self.graph.resource(node) {
                self.taken.remove(resource);
            }
        }
    }

    /// Returns a waiting node to the queue; it starts again when a job is free. Returns false if
    /// the node was not waiting.
    pub fn come_back(&mut self, node: NodeIndex) -> bool {
        let waited = self.waiting.remove(&node);
        if waited {
            self.ready.insert((self.graph.rank(node), node));
        }
        waited
    }

    /// Puts a running or waiting node back into the queue at its own priority, because it has more work to
    /// do. Nodes that wait for it keep waiting.
    pub fn again(&mut self, node: NodeIndex) {
        if self.come_back(node) {
            return;
        }
        if self.running.remove(&node) {
            if let Some(resource) = self.graph.resource(node) {
                self.taken.remove(resource);
            }
            self.ready.insert((self.graph.rank(node), node));
        }
    }

    /// Reports the end of a node that was returned; returns the nodes that are skipped because of it.
    ///
    /// A failed run stops nothing else. If the server or the probe of an endpoint failed, the runs of
    /// this endpoint are skipped; all others continue.
    ///
    /// # Panics
    ///
    /// Panics if `node` is not running.
    pub fn done(&mut self, node: NodeIndex, outcome: Outcome) -> Vec<Skipped> {
        let waited = self.waiting.remove(&node);
        assert!(waited || self.running.remove(&node), "node {node:?} is not running");
        if let Some(resource) = self.graph.resource(node).filter(|_| !waited) {
            self.taken.remove(resource);
        }
        let mut skipped = Vec::new();
        if outcome != Outcome::Ok {
            self.skip_behind(node, &mut skipped);
        }
        self.end(node);
        skipped
    }

    /// Skips the nodes that need the endpoint of `node`, a server start or probe that did not succeed.
    fn skip_behind(&mut self, node: NodeIndex, skipped: &mut Vec<Skipped>) {
        let reason = match self.graph.node(node) {
            Node::Serve { endpoint, .. } => SkipReason::NotStarted { endpoint: endpoint.clone() },
            Node::Probe { endpoint, .. } => SkipReason::NotReady { endpoint: endpoint.clone() },
            Node::Run(_) | Node::Gate { .. } => return,
        };
        let mut lost = vec![node];
        while let Some(at) = lost.pop() {
            for behind in self.graph.after(at) {
                if matches!(self.graph.node(behind), Node::Probe { .. } | Node::Run(_)) && self.end(behind) {
                    skipped.push(Skipped { node: behind, reason: reason.clone() });
                    // Only a skipped probe has more nodes to skip after it: a run is followed only by gates,
                    // which are never skipped.
                    if matches!(self.graph.node(behind), Node::Probe { .. }) {
                        lost.push(behind);
                    }
                }
            }
        }
        skipped.sort_by_key(|skip| self.graph.rank(skip.node));
    }

    /// Marks `node` as ended and releases the nodes that waited for it; returns false if it had already
    /// ended.
    fn end(&mut self, node: NodeIndex) -> bool {
        if !self.ended.insert(node) {
            return false;
        }
        // A node that is skipped may be ready: a skipped probe releases its runs just before they are skipped
        // too.
        self.ready.remove(&(self.graph.rank(node), node));
        for behind in self.graph.after(node) {
            self.waits[behind.index()] -= 1;
            if self.waits[behind.index()] == 0 && !self.ended.contains(&behind) {
                self.ready.insert((self.graph.rank(behind), behind));
            }
        }
        true
    }

    /// Number of running nodes, including those that wait for a server.
    pub fn under_way(&self) -> usize {
        self.running.len() + self.waiting.len()
    }

    /// Whether a node has ended or was skipped.
    pub fn has_ended(&self, node: NodeIndex) -> bool {
        self.ended.contains(&node)
    }

    /// Whether every node has ended or was skipped.
    pub fn is_finished(&self) -> bool {
        self.ended.len() == self.graph.len()
    }

    /// The nodes that were neither returned nor skipped, in execution order. After an interruption, these
    /// nodes remain to be done.
    pub fn left(&self) -> Vec<NodeIndex> {
        let mut left = self.graph.nodes();
        left.retain(|at| !self.running.contains(at) && !self.waiting.contains(at) && !self.ended.contains(at));
        left
    }
}
