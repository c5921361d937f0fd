//! Builds the graph from the runs of a plan.

use std::collections::HashMap;

use indexmap::IndexMap;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::expand::{Expansion, PlannedRun, RunId};

use super::servers::{Stay, levels, stays};
use super::{Graph, Node, Planned};

/// Why a plan has no graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The names of sweeps that depend on each other, with the first name repeated at the end.
    #[error("dependency cycle: {}; remove one `after`", .0.join(" → "))]
    Circle(Vec<String>),
    /// An `after` with an unknown name.
    #[error("sweep `{sweep}` comes after the unknown sweep `{after}`")]
    UnknownSweep {
        /// The sweep with the `after`.
        sweep: String,
        /// The unknown name.
        after: String,
    },
}

/// Builds the graph of the runs that remain to be done. `todo` is called with the position of each run in
/// `expansion.runs`, and returns whether to include the run.
pub fn build(expansion: &Expansion, todo: &dyn Fn(usize) -> bool) -> Result<Graph, GraphError> {
    let turns = turns(&expansion.after)?;
    let mut builder = Builder { expansion, graph: DiGraph::new(), gates: HashMap::new() };
    builder.add_gates();
    let mut probes = HashMap::new();
    let levels = levels(expansion, &turns);
    // Runs on launched servers are ordered by level first, so the level takes precedence over the turn.
    let turn_of = |at: usize| {
        let run = &expansion.runs[at];
        let level = if run.spec.endpoint.launch.is_some() { levels[&*run.sweep] } else { 0 };
        (level, turns[&*run.sweep], at)
    };
    let mut owners = Vec::new();
    for positions in by_id(&expansion.runs, todo).into_values() {
        // A run that several sweeps share belongs to the first of them, because waiting for a later sweep
        // could create a cycle.
        let owner = positions.iter().copied().min_by_key(|at| turn_of(*at));
        owners.extend(owner.map(|owner| (owner, positions)));
    }
    let in_order: Vec<usize> = owners.iter().map(|(owner, _)| *owner).collect();
    let mut positions: HashMap<usize, Vec<usize>> = HashMap::from_iter(owners);
    let stays = stays(expansion, &in_order, &levels);
    for owner in in_order.iter().filter(|at| expansion.runs[**at].spec.endpoint.launch.is_none()) {
        let probe = builder.probe_of(*owner, &mut probes);
        builder.add_run((*owner, *owner), &positions.remove(owner).unwrap_or_default(), probe);
    }
    let mut up: HashMap<&str, Vec<NodeIndex>> = HashMap::new();
    let turns = turns_of(&stays);
    for Stay { resource, runs } in &stays {
        let before = up.remove(resource.as_str()).unwrap_or_default();
        let nodes = builder.add_stay((runs, &turns), &before, &mut positions);
        up.insert(resource, nodes);
    }
    Ok(Graph { inner: builder.graph })
}

/// Maps the id of each run to execute to the positions of the run in `runs`. The ids are in execution order.
fn by_id(runs: &[PlannedRun], todo: &dyn Fn(usize) -> bool) -> IndexMap<RunId, Vec<usize>> {
    let mut groups: IndexMap<RunId, Vec<usize>> = IndexMap::new();
    for (at, run) in runs.iter().enumerate().filter(|(at, _)| todo(*at)) {
        groups.entry(run.id).or_default().push(at);
    }
    groups
}

/// The turn of each sweep, which is its position in the execution order. A sweep comes later than all sweeps
/// in its `after`; otherwise, sweeps are in declared order.
fn turns(sweeps: &IndexMap<String, Vec<String>>) -> Result<HashMap<&str, usize>, GraphError> {
    for (name, after) in sweeps {
        if let Some(after) = after.iter().find(|after| !sweeps.contains_key(*after)) {
            return Err(GraphError::UnknownSweep { sweep: name.clone(), after: after.clone() });
        }
    }
    let mut turns: HashMap<&str, usize> = HashMap::new();
    while turns.len() < sweeps.len() {
        let free = sweeps.iter().find(|(name, after)| {
            !turns.contains_key(name.as_str()) && after.iter().all(|after| turns.contains_key(after.as_str()))
        });
        match free {
            Some((name, _)) => turns.insert(name, turns.len()),
            None => return Err(GraphError::Circle(circle(sweeps, &turns))),
        };
    }
    Ok(turns)
}

/// A cycle among the sweeps that have no turn, with its first sweep repeated at the end.
fn circle(sweeps: &IndexMap<String, Vec<String>>, turns: &HashMap<&str, usize>) -> Vec<String> {
    let waits = |name: &str| !turns.contains_key(name);
    let mut path: Vec<String> = sweeps.keys().filter(|name| waits(name)).take(1).cloned().collect();
    while let Some(last) = path.last() {
        // Every sweep without a turn waits for another sweep without a turn, so the path ends up at a sweep
        // that it already contains.
        let Some(next) = sweeps[last].iter().find(|after| waits(after)).cloned() else { break };
        if let Some(start) = path.iter().position(|seen| *seen == next) {
            path.drain(..start);
            path.push(next);
            break;
        }
        path.push(next);
    }
    path
}

/// Returns the turn of each run on a launched server. The runs on one resource keep the same set of positions
/// among all runs, but fill these positions in the order of their stays.
fn turns_of(stays: &[Stay]) -> HashMap<usize, usize> {
    let mut by_resource: IndexMap<&str, Vec<usize>> = IndexMap::new();
    for stay in stays {
        by_resource.entry(&stay.resource).or_default().extend(&stay.runs);
    }
    let in_turn = by_resource.into_values().flat_map(|runs| {
        let mut places = runs.clone();
        places.sort_unstable();
        runs.into_iter().zip(places)
    });
    in_turn.collect()
}

struct Builder<'a> {
    expansion: &'a Expansion,
    graph: DiGraph<Planned, ()>,
    /// For each sweep that is named in the `after` of another sweep: its gate.
    gates: HashMap<&'a str, NodeIndex>,
}

impl<'a> Builder<'a> {
    fn add_gates(&mut self) {
        for after in self.expansion.after.values().flatten() {
            if !self.gates.contains_key(after.as_str()) {
                let last = self.expansion.runs.iter().rposition(|run| *run.sweep == **after).unwrap_or(0);
                let node = Node::Gate { sweep: after.clone() };
                let gate = self.graph.add_node(Planned { node, rank: (last, 3), resource: None });
                self.gates.insert(after, gate);
            }
        }
        // The gate of a sweep waits for the gates of the sweeps in its `after`, so that `after` also works
        // across a sweep without remaining runs.
        for (name, gate) in &self.gates {
            for after in &self.expansion.after[*name] {
                self.graph.update_edge(self.gates[after.as_str()], *gate, ());
            }
        }
    }

    /// Adds one start of a launched server with its probe and its runs, after the runs on the previous
    /// server. Returns the nodes of the runs.
    fn add_stay(
        &mut self,
        (runs, turns): (&[usize], &HashMap<usize, usize>),
        before: &[NodeIndex],
        positions: &mut HashMap<usize, Vec<usize>>,
    ) -> Vec<NodeIndex> {
        let first = runs[0];
        let endpoint = self.expansion.runs[first].spec.endpoint.name.clone();
        let turn = turns[&first];
        let serve = self.add(Node::Serve { endpoint: endpoint.clone(), run: first }, (turn, 0), &endpoint);
        let probe = self.add(Node::Probe { endpoint: endpoint.clone(), run: first }, (turn, 1), &endpoint);
        self.graph.update_edge(serve, probe, ());
        for node in before {
            self.graph.update_edge(*node, serve, ());
        }
        let mut nodes = Vec::with_capacity(runs.len());
        for run in runs {
            nodes.push(self.add_run((*run, turns[run]), &positions.remove(run).unwrap_or_default(), probe));
        }
        nodes
    }

    /// Returns the probe for the endpoint of a run that needs no launched server, and adds the probe if it is
    /// missing.
    fn probe_of(&mut self, owner: usize, probes: &mut HashMap<&'a str, NodeIndex>) -> NodeIndex {
        let endpoint = self.expansion.runs[owner].spec.endpoint.name.as_str();
        *probes.entry(endpoint).or_insert_with(|| self.add_probe(owner))
    }

    fn add_run(&mut self, (owner, turn): (usize, usize), positions: &[usize], probe: NodeIndex) -> NodeIndex {
        let runs = &self.expansion.runs;
        let endpoint = runs[owner].spec.endpoint.name.as_str();
        let run = self.add(Node::Run(owner), (turn, 2), endpoint);
        self.graph.update_edge(probe, run, ());
        for after in &self.expansion.after[&*runs[owner].sweep] {
            self.graph.update_edge(self.gates[after.as_str()], run, ());
        }
        for at in positions {
            if let Some(gate) = self.gates.get(&*runs[*at].sweep) {
                self.graph.update_edge(run, *gate, ());
            }
        }
        run
    }

    /// Adds the probe for the endpoint of run `first`, after the start of the endpoint's embedded server if
    /// it has one.
    fn add_probe(&mut self, first: usize) -> NodeIndex {
        let spec = &self.expansion.runs[first].spec.endpoint;
        let endpoint = spec.name.clone();
        let probe = self.add(Node::Probe { endpoint: endpoint.clone(), run: first }, (first, 1), &spec.name);
        if spec.mock.is_some() {
            let serve = self.add(Node::Serve { endpoint, run: first }, (first, 0), &spec.name);
            self.graph.update_edge(serve, probe, ());
        }
        probe
    }

    fn add(&mut self, node: Node, rank: super::Rank, endpoint: &str) -> NodeIndex {
        let resource = Some(self.expansion.resources[endpoint].clone());
        self.graph.add_node(Planned { node, rank, resource })
    }
}
