//! Going through a graph: which node is next, and what its end means for the others. No clock and no I/O.
//!
//! The caller asks [`Walk::next_node`] until it says `None`, does those things, and reports each by [`Walk::done`]. A
//! pause after a run belongs to it: report the run done when the pause is over, and the resource stays taken until then.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use petgraph::graph::NodeIndex;

use super::{Graph, Node, Rank};

/// How a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As it should.
    Ok,
    /// Not as it should.
    Failed,
    /// Not at all: the caller left it out.
    Skipped,
}

/// Why nodes were left out.
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

/// A node that will not be given out, because another one failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The node: a run, or the probe behind a server that did not start.
    pub node: NodeIndex,
    /// Why.
    pub reason: SkipReason,
}

/// A walk through a graph: gives out every node once, or skips it once.
#[derive(Debug, Clone)]
pub struct Walk<'g> {
    graph: &'g Graph,
    jobs: usize,
    /// For each node, how many it still waits for.
    waits: Vec<usize>,
    /// Nodes that wait for nothing and were not given out.
    ready: BTreeSet<(Rank, NodeIndex)>,
    running: HashSet<NodeIndex>,
    /// Resources taken by running nodes.
    taken: HashSet<&'g str>,
    /// Nodes under way that wait for a server, and hold no job meanwhile. Their resources are kept for them.
    waiting: HashSet<NodeIndex>,
    ended: HashSet<NodeIndex>,
}

impl<'g> Walk<'g> {
    /// A walk that has at most `jobs` nodes under way at once (gates not counted); 0 means 1.
    ///
    /// Probes and starts count as jobs too, so that with one job nothing disturbs a run that is being measured.
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

    /// The next node to start, in execution order; `None` while nothing may start.
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

    /// A node under way waits for its server: others may go on, but none on its resource. A node that waits already goes on waiting.
    pub fn wait(&mut self, node: NodeIndex) {
        if self.running.remove(&node) {
            self.waiting.insert(node);
            if let Some(resource) = self.graph.resource(node) {
                self.taken.remove(resource);
            }
        }
    }

    /// A node that waited for its server is given out again when there is a job for it. False where it did not wait.
    pub fn come_back(&mut self, node: NodeIndex) -> bool {
        let waited = self.waiting.remove(&node);
        if waited {
            self.ready.insert((self.graph.rank(node), node));
        }
        waited
    }

    /// A node under way, or one that waits for its server, goes on with something else, in its turn: what waits for it waits on.
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

    /// Reports the end of a node that was given out; returns the nodes that are skipped because of it.
    ///
    /// A failed run holds nobody up. An endpoint whose server or probe failed loses its runs; the others go on.
    ///
    /// # Panics
    /// When `node` is not under way.
    pub fn done(&mut self, node: NodeIndex, outcome: Outcome) -> Vec<Skipped> {
        let waited = self.waiting.remove(&node);
        assert!(waited || self.running.remove(&node), "node {node:?} is not under way");
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

    /// Skips what needs the endpoint that `node` was to make ready.
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
                    // Only a probe has more behind it: what is behind a run is a gate, which a skip does not stop.
                    if matches!(self.graph.node(behind), Node::Probe { .. }) {
                        lost.push(behind);
                    }
                }
            }
        }
        skipped.sort_by_key(|skip| self.graph.rank(skip.node));
    }

    /// Marks `node` as ended and frees what waited for it; false where it had ended before.
    fn end(&mut self, node: NodeIndex) -> bool {
        if !self.ended.insert(node) {
            return false;
        }
        // A skipped probe frees its runs a moment before they are skipped too.
        self.ready.remove(&(self.graph.rank(node), node));
        for behind in self.graph.after(node) {
            self.waits[behind.index()] -= 1;
            if self.waits[behind.index()] == 0 && !self.ended.contains(&behind) {
                self.ready.insert((self.graph.rank(behind), behind));
            }
        }
        true
    }

    /// How many nodes are under way, those that wait for a server included.
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

    /// The nodes that were neither given out nor skipped, in execution order: what an interruption leaves.
    pub fn left(&self) -> Vec<NodeIndex> {
        let mut left = self.graph.nodes();
        left.retain(|at| !self.running.contains(at) && !self.waiting.contains(at) && !self.ended.contains(at));
        left
    }
}
