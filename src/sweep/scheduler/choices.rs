//! The part of the scheduler that goes on with searches and ladders. A pool is in the graph as the node of the run that it asks for
//! first; when that has ended, the node stands for the next one, so that the graph never changes and a launched server stays up.

use petgraph::graph::NodeIndex;

use super::Scheduler;
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
        let pools = self.pools.of_node.entry(node).or_default();
        for (pool, places) in choices.places.iter().enumerate() {
            if !pools.contains(&pool) && places.iter().any(is_same) {
                pools.push(pool);
            }
        }
        for pool in pools.clone() {
            let chosen = (choices.choose)(&sweep.expansion.pools[pool]);
            let next = chosen.next.map(|next| choices.places[pool][next]);
            // What comes next may be done already, or be the turn of another node: a redo, say.
            let is_free = |next: &usize| !self.begun.contains_key(next) && !sweep.todo[*next] && choices.picked[*next];
            let view = next.filter(is_free).map(|next| self.stand_for(node, next, chosen.to_string()));
            let (goes_on, pool) = (view.is_some(), sweep.expansion.pools[pool].title());
            self.observer.event(Event::Chosen { pool, standing: chosen.to_string(), next: view });
            if goes_on {
                return true;
            }
        }
        false
    }

    /// Has a node stand for a run that was chosen: it is one more to do.
    fn stand_for(&mut self, node: NodeIndex, next: usize, standing: String) -> RunView {
        let expansion = self.sweep.expansion;
        let run = &expansion.runs[next];
        let view = RunView::among(self.pools.next_number, run, &Naming::of(&expansion.runs));
        let view = RunView { standing: Some(standing), ..view };
        self.pools.next_number += 1;
        self.views.insert(next, view.clone());
        let endpoint = &run.spec.endpoint.name;
        *self.runs_left.entry(endpoint.clone()).or_default() += 1;
        *self.waiting.entry(expansion.resources[endpoint].clone()).or_default() += 1;
        self.cells.add(run);
        self.pools.runs.insert(node, next);
        view
    }
}
