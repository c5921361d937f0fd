//! Determines how a graph is drawn: its nodes with their states, including searches and series, and
//! their dependencies.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::expand::{Expansion, PlannedRun, RunId};

use super::cells::{add_cells, cell_label};
use super::drawn::{DRAWN_RUNS, Drawing, DrawnNode, PoolState, RunState, States};
use super::{Graph, Node};

/// The drawing of `graph`, which was built from `expansion`.
pub fn drawing(graph: &Graph, expansion: &Expansion, states: &States) -> Drawing {
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    let order = graph.nodes();
    let sweep_of = |node: &Node| match node {
        Node::Run(at) => Some(&*expansion.runs[*at].sweep),
        _ => None,
    };
    for at in &order {
        *sizes.entry(sweep_of(graph.node(*at)).unwrap_or_default()).or_default() += 1;
    }
    let unknown = RunState::of("pending");
    let state_of = |at: usize| states.runs.get(at).unwrap_or(&unknown);
    let (mut nodes, mut drawn, mut merged) = (Vec::new(), HashMap::new(), HashMap::new());
    // The positions of nodes in the drawing: for each run with its endpoint, and for the gate of each sweep.
    let mut places: HashMap<(&str, RunId), usize> = HashMap::new();
    let mut gates: HashMap<&str, usize> = HashMap::new();
    for at in &order {
        let node = graph.node(*at);
        let place = match sweep_of(node).filter(|sweep| sizes[sweep] > DRAWN_RUNS) {
            Some(sweep) => *merged.entry(sweep).or_insert_with(|| {
                nodes.push(several(sweep, sizes[sweep], expansion, &state_of));
                nodes.len() - 1
            }),
            None => {
                nodes.push(single(node, expansion, &state_of));
                nodes.len() - 1
            }
        };
        match node {
            Node::Run(run) => {
                let run = &expansion.runs[*run];
                places.insert((run.spec.endpoint.name.as_str(), run.id), place);
            }
            Node::Gate { sweep } => {
                gates.insert(sweep.as_str(), place);
            }
            Node::Serve { .. } | Node::Probe { .. } => {}
        }
        drawn.insert(*at, place);
    }
    let edges = order.iter().flat_map(|at| graph.after(*at).map(|to| (drawn[at], drawn[&to]))).collect();
    let mut drawing = Drawing { nodes, edges };
    let mut owned = HashSet::new();
    for pool in &states.pools {
        let of_run = |id: &RunId| {
            let run = expansion.runs.iter().find(|run| run.id == *id && *run.sweep == *pool.sweep)?;
            places.get(&(run.spec.endpoint.name.as_str(), *id)).copied()
        };
        let under: Vec<(usize, &str)> =
            pool.runs.iter().filter_map(|(id, said)| Some((of_run(id)?, said.as_str()))).collect();
        let gate = gates.get(pool.sweep.as_str()).copied();
        drawing.add(pool, &under, gate, &mut owned);
    }
    add_cells(&mut drawing, expansion, &gates);
    drawing
}

impl Drawing {
    /// Adds a search or a series, after its runs and before the gate of its sweep. Each run that
    /// the search or series requested waits for the run that was requested before it, unless the
    /// run already belongs to another search.
    fn add(&mut self, pool: &PoolState, under: &[(usize, &str)], gate: Option<usize>, owned: &mut HashSet<usize>) {
        let at = self.nodes.len();
        self.nodes.push(DrawnNode {
            kind: pool.kind,
            label: pool.title.clone(),
            count: 1,
            state: Some(pool.state),
            said: Some(pool.standing.clone()),
            value: pool.found,
            ..DrawnNode::default()
        });
        let mut last = None;
        for (place, said) in under {
            self.edges.retain(|edge| Some(*edge) != gate.map(|gate| (*place, gate)));
            if self.nodes[*place].kind != "run" || !owned.insert(*place) {
                self.edges.insert((*place, at));
                continue;
            }
            let node = &mut self.nodes[*place];
            (node.asked_by, node.said) = (Some(at), Some((*said).to_owned()));
            if let Some(before) = last.replace(*place) {
                let nodes = &self.nodes;
                self.edges.retain(|(from, to)| to != place || nodes[*from].kind != "probe");
                self.edges.insert((before, *place));
            }
        }
        self.edges.extend(last.map(|last| (last, at)));
        self.edges.extend(gate.map(|gate| (at, gate)));
        for load in &pool.pruned {
            self.edges.insert((at, self.nodes.len()));
            self.nodes.push(DrawnNode {
                kind: "pruned",
                label: load.label.clone(),
                count: load.runs,
                state: Some("pruned"),
                said: Some(load.why.clone()),
                asked_by: Some(at),
                ..DrawnNode::default()
            });
        }
    }
}

fn several<'a>(
    sweep: &str,
    count: usize,
    expansion: &Expansion,
    state_of: &dyn Fn(usize) -> &'a RunState,
) -> DrawnNode {
    let of_sweep = expansion.runs.iter().enumerate().filter(|(_, run)| *run.sweep == *sweep);
    let states: BTreeSet<&'static str> = of_sweep.map(|(at, _)| state_of(at).state).collect();
    let state = match (states.contains("pending"), states.first()) {
        (_, Some(only)) if states.len() == 1 => only,
        (true, _) => "partly",
        (false, _) => "done",
    };
    let label = format!("{sweep}: {count} runs, drawn as one");
    DrawnNode { kind: "runs", label, count, state: Some(state), ..DrawnNode::default() }
}

fn single<'a>(node: &Node, expansion: &Expansion, state_of: &dyn Fn(usize) -> &'a RunState) -> DrawnNode {
    let other = |kind, label| DrawnNode { kind, label, ..DrawnNode::default() };
    match node {
        Node::Serve { endpoint, run } => {
            let settings = expansion.runs[*run].server_settings().map(|(flag, value)| format!(" {flag}={value}"));
            other("serve", format!("start {endpoint}{}", settings.collect::<String>()))
        }
        Node::Probe { endpoint, .. } => other("probe", format!("probe {endpoint}")),
        Node::Gate { sweep } => other("gate", format!("{sweep} has ended")),
        Node::Run(at) => {
            let run = &expansion.runs[*at];
            let RunState { state, why } = state_of(*at).clone();
            let (label, id) = (run_label(run), Some(run.id.short()));
            DrawnNode { label, id, state: Some(state), said: why, ..DrawnNode::default() }
        }
    }
}

fn run_label(run: &PlannedRun) -> String {
    format!("{}: {} repeat={}", run.sweep, cell_label(&run.cell), run.repeat)
}
