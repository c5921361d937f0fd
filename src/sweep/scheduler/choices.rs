//! The part of the scheduler that continues searches and ladders. In the graph, a pool has only the node of
//! the run that it requests first. When this run has ended, the same node represents the pool's next run.
//! The graph thus never changes, and a launched server keeps running.

use petgraph::graph::NodeIndex;

use super::{Scheduler, one_less};
use crate::expand::Pool;
use crate::graph::{Node, Outcome};
use crate::sweep::event::{Event, Naming, RunView};

impl Scheduler<'_, '_> {
    /// Called when a run has ended. If a pool now requests another run, lets the node represent this run
    /// and returns true. If the requested run cannot be executed in this invocation, for example because it
    /// has failed before, the pool is continued by a later invocation.
    pub(super) fn choose_next(&mut self, node: NodeIndex, at: usize) -> bool {
        let sweep = self.sweep;
        let Some(choices) = &sweep.choices else { return false };
        let run = &sweep.expansion.runs[at];
        // Two sweeps may request the same run, which then has only one node. If both sweeps use the same
        // endpoint, the node continues their pools one after the other.
        let is_same = |other: &usize| {
            let other = &sweep.expansion.runs[*other];
            other.id == run.id && other.spec.endpoint.name == run.spec.endpoint.name
        };
        let mut pools = self.pools.of_node.get(&node).cloned().unwrap_or_default();
        for (pool, places) in choices.places.iter().enumerate() {
            if !pools.contains(&pool) && places.iter().any(is_same) && !self.is_served_elsewhere(node, pool, places) {
                pools.push(pool);
            }
        }
        self.pools.of_node.insert(node, pools.clone());
        for pool in pools {
            let chosen = (choices.choose)(&sweep.expansion.pools[pool]);
            let next = chosen.next.map(|next| choices.places[pool][next]);
            // The next run may have failed before, or it may have its own node, for example because it is
            // repeated.
            let is_free = |next: &usize| {
                let is_over = self.over.contains_key(&sweep.expansion.runs[*next].id);
                !is_over && !self.begun.contains_key(next) && !sweep.todo[*next] && choices.picked[*next]
            };
            let view = next.filter(is_free).map(|next| self.stand_for(node, next, chosen.to_string()));
            let goes_on = view.is_some();
            let standing = chosen.to_string();
            // The state is reported only if it has changed, because a run of another pool usually does not
            // change it.
            if self.pools.told.insert(pool, standing.clone()).as_ref() != Some(&standing) || goes_on {
                let pool = sweep.expansion.pools[pool].title();
                self.observer.event(Event::Chosen { pool, standing, next: view });
            }
            if goes_on {
                return true;
            }
        }
        false
    }

    /// Returns the names of the searches and ladders that request a run.
    pub(super) fn pools_that_go_on(&self) -> Vec<String> {
        let Some(choices) = &self.sweep.choices else { return Vec::new() };
        let pools = self.sweep.expansion.pools.iter().zip(&choices.places);
        let goes_on = |pool: &Pool, places: &[usize]| {
            (choices.choose)(pool).next.is_some_and(|next| choices.picked[places[next]])
        };
        pools.filter(|(pool, places)| goes_on(pool, places)).map(|(pool, _)| pool.title()).collect()
    }

    /// Whether another node that has not ended represents a run of the pool or continues the pool. Only one
    /// node may continue a pool at a time.
    fn is_served_elsewhere(&self, node: NodeIndex, pool: usize, places: &[usize]) -> bool {
        let serves = |other: &NodeIndex| {
            let goes_on = self.pools.of_node.get(other).is_some_and(|pools| pools.contains(&pool));
            goes_on || matches!(self.node(*other), Node::Run(run) if places.contains(&run))
        };
        self.graph.nodes().into_iter().any(|other| other != node && !self.walk.has_ended(other) && serves(&other))
    }

    /// Lets a node represent the run `next`, which a pool has chosen, and returns the run's view. If
    /// another sweep executes the same run, the view has the number of that run; otherwise it gets a new
    /// number.
    fn stand_for(&mut self, node: NodeIndex, next: usize, standing: String) -> RunView {
        let expansion = self.sweep.expansion;
        let run = &expansion.runs[next];
        let is_same = |(at, view): &(&usize, &RunView)| view.id == run.id && !self.early.leaves_out(**at);
        let shared = self.views.iter().find(is_same).map(|(_, view)| view.number);
        let number = shared.unwrap_or(self.pools.next_number);
        let view = RunView::among(number, run, &Naming::of(&expansion.runs));
        let view = RunView { standing: Some(standing), ..view };
        self.pools.next_number += usize::from(shared.is_none());
        self.views.insert(next, view.clone());
        let endpoint = &run.spec.endpoint.name;
        *self.runs_left.entry(endpoint.clone()).or_default() += 1;
        *self.waiting.entry(expansion.resources[endpoint].clone()).or_default() += 1;
        self.cells.add(run);
        self.pools.runs.insert(node, next);
        view
    }

    /// Handles a run that this node does not have to execute: it was already executed for another sweep,
    /// or another worker has committed it or is measuring it. If the run is settled, its pool continues
    /// from the result.
    pub(super) fn was_measured(&mut self, node: NodeIndex, at: usize, is_settled: bool) {
        let run = &self.sweep.expansion.runs[at];
        let goes_on = is_settled && self.choose_next(node, at);
        self.cells.end(run);
        let endpoint = &run.spec.endpoint.name;
        if one_less(&mut self.runs_left, endpoint) == 0 {
            self.forget(endpoint);
        }
        one_less(&mut self.waiting, &self.sweep.expansion.resources[endpoint]);
        if goes_on {
            self.walk.again(node);
        } else {
            self.walk.done(node, if is_settled { Outcome::Ok } else { Outcome::Skipped });
        }
    }

    /// Whether the run of a node has already ended as the run of another node and does not belong to a
    /// pool. No server is then needed for it.
    pub(super) fn needs_no_server(&self, node: NodeIndex) -> bool {
        let Node::Run(at) = self.graph.node(node) else { return false };
        let is_chosen = self.sweep.choices.iter().flat_map(|choices| &choices.places).any(|places| places.contains(at));
        !is_chosen && self.over.contains_key(&self.sweep.expansion.runs[*at].id)
    }
}
