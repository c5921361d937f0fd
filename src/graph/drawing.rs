//! What is drawn of a graph: its nodes with their states, searches and ladders among them, and what waits for what.

use std::collections::{BTreeSet, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Expansion, PlannedRun, RunId};

use super::{Graph, Node};

/// A sweep with more runs than this is drawn as one node that says how many it stands for.
pub(crate) const DRAWN_RUNS: usize = 200;

/// What is drawn: nodes in execution order, behind them searches and ladders with what they leave out, and edges as positions among them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Drawing {
    /// The nodes.
    pub nodes: Vec<DrawnNode>,
    /// From, to, as positions among the nodes, from 0: the second waits for the first.
    pub edges: BTreeSet<(usize, usize)>,
}

/// One node as it is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DrawnNode {
    /// What it does: serve, probe, run, runs (several, drawn as one), gate, search, ladder or pruned (a load that a ladder leaves out).
    pub kind: &'static str,
    /// What it says.
    pub label: String,
    /// How many nodes of the graph it stands for; of what is left out, how many runs.
    pub count: usize,
    /// The run's id; absent for other nodes, and for several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Of a run pending, done or given_up; of several runs pending, partly or done; of a search or a ladder pending, searching or done; of
    /// what is left out pruned. Absent for other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// What it came to: how a search or a ladder stands, what a run that one asked for said, why a load is left out. Absent where there
    /// is nothing to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The load that a search found, in what its axis counts. Absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The search or ladder that asked for it, or leaves it out, as its position among the nodes. Absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<usize>,
}

/// How far the runs of a plan are.
#[derive(Debug, Default)]
pub struct States {
    /// For each run of the expansion, by position: pending, done or given_up. A run beyond its end is pending.
    pub runs: Vec<&'static str>,
    /// The searches and ladders.
    pub pools: Vec<PoolState>,
}

/// How a search or a ladder stands.
#[derive(Debug)]
pub struct PoolState {
    /// Its sweep.
    pub sweep: String,
    /// search or ladder.
    pub kind: &'static str,
    /// What it is called.
    pub title: String,
    /// pending, searching or done.
    pub state: &'static str,
    /// How it stands, in words.
    pub standing: String,
    /// The load that it found.
    pub found: Option<f64>,
    /// Its runs in the order in which they were asked for, each with what it said, or what it is for.
    pub runs: Vec<(RunId, String)>,
    /// What it leaves out.
    pub pruned: Vec<PrunedLoad>,
}

/// A load that a ladder leaves out.
#[derive(Debug)]
pub struct PrunedLoad {
    /// What it is called.
    pub label: String,
    /// Why.
    pub why: String,
    /// How many runs that are.
    pub runs: usize,
}

/// What to draw of `graph`, which was built from `expansion`.
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
    let state_of = |at: usize| states.runs.get(at).copied().unwrap_or("pending");
    let (mut nodes, mut drawn, mut merged) = (Vec::new(), HashMap::new(), HashMap::new());
    // Where runs of an endpoint are drawn, and gates of a sweep.
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
    drawing
}

impl Drawing {
    /// Adds a search or a ladder: behind its runs, before the gate of its sweep. A run that it asked for waits for the one before, as
    /// far as no other search has it too.
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

impl Default for DrawnNode {
    fn default() -> DrawnNode {
        DrawnNode {
            kind: "run",
            label: String::new(),
            count: 1,
            id: None,
            state: None,
            said: None,
            value: None,
            asked_by: None,
        }
    }
}

fn several(sweep: &str, count: usize, expansion: &Expansion, state_of: &dyn Fn(usize) -> &'static str) -> DrawnNode {
    let of_sweep = expansion.runs.iter().enumerate().filter(|(_, run)| *run.sweep == *sweep);
    let states: HashSet<&str> = of_sweep.map(|(at, _)| state_of(at)).collect();
    let state = match (states.contains("pending"), states.len()) {
        (true, 1) => "pending",
        (true, _) => "partly",
        (false, _) => "done",
    };
    let label = format!("{sweep}: {count} runs, drawn as one");
    DrawnNode { kind: "runs", label, count, state: Some(state), ..DrawnNode::default() }
}

fn single(node: &Node, expansion: &Expansion, state_of: &dyn Fn(usize) -> &'static str) -> DrawnNode {
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
            let (label, id) = (run_label(run), Some(run.id.short()));
            DrawnNode { label, id, state: Some(state_of(*at)), ..DrawnNode::default() }
        }
    }
}

fn run_label(run: &PlannedRun) -> String {
    let cell = run.cell.iter().map(|(axis, value)| format!("{axis}={value}")).collect::<Vec<_>>().join(" ");
    format!("{}: {cell} repeat={}", run.sweep, run.repeat)
}
