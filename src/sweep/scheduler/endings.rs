//! The part of the scheduler that skips repeats that are no longer needed. Their nodes stay in the graph
//! and end as soon as their turn comes, so that nodes that wait for them can continue. A server that only
//! skipped runs need is not started.

use petgraph::graph::NodeIndex;

use super::{Scheduler, one_less};
use crate::expand::{CellEnd, PlannedRun, Series};
use crate::graph::Node;
use crate::sweep::event::{Event, planned_cell};

impl Scheduler<'_, '_> {
    /// Called after a run has ended for good. Skips runs that are no longer needed by its cell or
    /// by cells compared with it.
    pub(super) fn end_early(&mut self, at: usize) {
        let sweep = self.sweep;
        let Some(ends_of) = sweep.ends else { return };
        let id = sweep.expansion.runs[at].id;
        self.early.ended.insert(id);
        for (number, series) in sweep.expansion.series.iter().enumerate() {
            if !series.runs().any(|run| run.id == id) {
                continue;
            }
            let early = &self.early;
            let is_open = |run: &PlannedRun| early.wanted.contains_key(&run.id) && !early.ended.contains(&run.id);
            let ends = ends_of(series, &is_open);
            for (cell, end) in ends.iter().enumerate() {
                if let Some(end) = end.as_ref().filter(|_| self.early.known.insert((number, cell))) {
                    self.cell_ended(series, &series.cells[cell].runs, end);
                }
            }
        }
    }

    /// If a node is a run that the budget now skips, skips it and returns true. Runs of a search or a
    /// ladder are not checked.
    pub(super) fn is_over_budget(&mut self, node: NodeIndex) -> bool {
        let (Node::Run(at), None) = (self.graph.node(node), self.pools.run(node)) else { return false };
        let planned = &self.sweep.expansion.runs[*at];
        if self.begun.contains_key(at) {
            return false;
        }
        let Some(why) = self.sweep.over_budget.and_then(|over_budget| over_budget(planned)) else { return false };
        self.leave_out(*at);
        let (cell, runs) = (format!("{}: {}", planned.sweep, planned_cell(planned)), vec![self.views[at].clone()]);
        self.summary.pruned += 1;
        self.observer.event(Event::Pruned { cell, why, runs });
        true
    }

    /// Records that a run will not begin, so that nothing waits for it any longer.
    fn leave_out(&mut self, at: usize) {
        self.early.left_out.insert(at);
        let planned = &self.sweep.expansion.runs[at];
        self.cells.end(planned);
        one_less(&mut self.waiting, &self.sweep.expansion.resources[&planned.spec.endpoint.name]);
        if one_less(&mut self.runs_left, &planned.spec.endpoint.name) == 0 {
            self.forget(&planned.spec.endpoint.name);
        }
    }

    /// Skips the runs of a cell after its end that were not begun and that no other sweep requests.
    fn cell_ended(&mut self, series: &Series, runs: &[PlannedRun], end: &CellEnd) {
        let mut left_out = Vec::new();
        for run in &runs[(end.after as usize).min(runs.len())..] {
            let Some((at, node)) = self.early.nodes.get(&run.id).copied() else { continue };
            if self.begun.contains_key(&at)
                || self.asking.contains(&node)
                || self.early.ended.contains(&run.id)
                || self.early.leaves_out(at)
            {
                continue;
            }
            if self.early.one_less_wants(&run.id) > 0 {
                continue;
            }
            self.leave_out(at);
            left_out.push(self.views[&at].clone());
        }
        if !left_out.is_empty() {
            self.summary.pruned += left_out.len();
            let cell = format!("{}: {}", series.sweep, planned_cell(&runs[0]));
            self.observer.event(Event::Pruned { cell, why: end.why.clone(), runs: left_out });
        }
    }

    /// Whether a node has nothing to do: its run is skipped, or it starts or probes a server for
    /// skipped runs only.
    pub(super) fn has_nothing_to_do(&self, node: NodeIndex) -> bool {
        if self.early.left_out.is_empty() && self.over.is_empty() {
            return false;
        }
        match self.graph.node(node) {
            Node::Run(at) => self.pools.run(node).is_none() && self.early.leaves_out(*at),
            Node::Gate { .. } => false,
            Node::Serve { .. } | Node::Probe { .. } => {
                let mut behind = self.graph.after(node).peekable();
                behind.peek().is_some() && behind.all(|node| self.has_nothing_to_do(node) || self.needs_no_server(node))
            }
        }
    }
}
