//! The part of the scheduler that goes on with searches and ladders. A pool is in the graph as the node of the run that it asks for
//! first; when that has ended, the node stands for the next one, so that the graph never changes and a launched server stays up.

use petgraph::graph::NodeIndex;

use super::{Scheduler, one_less};
use crate::expand::Pool;
use crate::graph::{Node, Outcome};
use crate::sweep::event::{Event, Naming, RunView};

impl Scheduler<'_, '_> {
    /// After a run of a pool: whether another one is asked for, which the node stands for from now on. A run that was not measured as it
    /// should be leaves the pool where it stands, for another invocation.
    pub(super) fn choose_next(&mut self, node: NodeIndex, at: usize) -> bool {
        let sweep = self.sweep;
        let Some(choices) = &sweep.choices else { return false };
        let run = &sweep.expansion.runs[at];
        // Two sweeps may ask for the same run, which is one node: on one endpoint it serves both, each in its turn.
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
            // What comes next may have failed before, or be the turn of another node: a redo, say.
            let is_free = |next: &usize| {
                let is_over = self.over.contains_key(&sweep.expansion.runs[*next].id);
                !is_over && !self.begun.contains_key(next) && !sweep.todo[*next] && choices.picked[*next]
            };
            let view = next.filter(is_free).map(|next| self.stand_for(node, next, chosen.to_string()));
            let goes_on = view.is_some();
            let standing = chosen.to_string();
            // Behind a run that is not its own a pool mostly stands where it stood.
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

    /// Searches and ladders that ask for a run.
    pub(super) fn pools_that_go_on(&self) -> Vec<String> {
        let Some(choices) = &self.sweep.choices else { return Vec::new() };
        let pools = self.sweep.expansion.pools.iter().zip(&choices.places);
        let goes_on = |pool: &Pool, places: &[usize]| {
            (choices.choose)(pool).next.is_some_and(|next| choices.picked[places[next]])
        };
        pools.filter(|(pool, places)| goes_on(pool, places)).map(|(pool, _)| pool.title()).collect()
    }

    /// Whether a node that has not ended stands for a run of the pool, or goes on with it: one node goes on with a pool at a time.
    fn is_served_elsewhere(&self, node: NodeIndex, pool: usize, places: &[usize]) -> bool {
        let serves = |other: &NodeIndex| {
            let goes_on = self.pools.of_node.get(other).is_some_and(|pools| pools.contains(&pool));
            goes_on || matches!(self.node(*other), Node::Run(run) if places.contains(&run))
        };
        self.graph.nodes().into_iter().any(|other| other != node && !self.walk.has_ended(other) && serves(&other))
    }

    /// Has a node stand for a run that was chosen: it is one more to do, unless another sweep has it to do, too.
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

    /// The turn of a run comes that another sweep asked for, too, and that has ended since: its result serves both. A pool goes on from it.
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

    /// Whether the run of a node has ended as that of another one, and nothing is chosen by it.
    pub(super) fn needs_no_server(&self, node: NodeIndex) -> bool {
        let Node::Run(at) = self.graph.node(node) else { return false };
        let is_chosen = self.sweep.choices.iter().flat_map(|choices| &choices.places).any(|places| places.contains(at));
        !is_chosen && self.over.contains_key(&self.sweep.expansion.runs[*at].id)
    }
}
