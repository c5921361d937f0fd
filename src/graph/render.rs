//! The graph drawn: Graphviz, Mermaid, JSON.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::{Expansion, PlannedRun};

use super::{Graph, Node};

/// A sweep with more runs than this is drawn as one node that says how many it stands for.
pub(crate) const DRAWN_RUNS: usize = 200;

/// What is drawn: nodes in execution order, edges as positions among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Drawing {
    /// The nodes.
    pub nodes: Vec<DrawnNode>,
    /// From, to, as positions among the nodes, from 0: the second waits for the first.
    pub edges: BTreeSet<(usize, usize)>,
}

/// One node as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DrawnNode {
    /// What it does: serve, probe, run, runs (several, drawn as one) or gate.
    pub kind: &'static str,
    /// What it says.
    pub label: String,
    /// How many nodes of the graph it stands for.
    pub count: usize,
    /// The run's id; absent for other nodes, and for several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What to draw of `graph`, which was built from `expansion`.
pub fn drawing(graph: &Graph, expansion: &Expansion) -> Drawing {
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    let order = graph.nodes();
    let sweep_of = |node: &Node| match node {
        Node::Run(at) => Some(&*expansion.runs[*at].sweep),
        _ => None,
    };
    for at in &order {
        *sizes.entry(sweep_of(graph.node(*at)).unwrap_or_default()).or_default() += 1;
    }
    let (mut nodes, mut drawn, mut merged) = (Vec::new(), HashMap::new(), HashMap::new());
    for at in &order {
        let node = graph.node(*at);
        let place = match sweep_of(node).filter(|sweep| sizes[sweep] > DRAWN_RUNS) {
            Some(sweep) => *merged.entry(sweep).or_insert_with(|| {
                nodes.push(several(sweep, sizes[sweep]));
                nodes.len() - 1
            }),
            None => {
                nodes.push(single(node, expansion));
                nodes.len() - 1
            }
        };
        drawn.insert(*at, place);
    }
    let edges = order.iter().flat_map(|at| graph.after(*at).map(|to| (drawn[at], drawn[&to]))).collect();
    Drawing { nodes, edges }
}

fn several(sweep: &str, count: usize) -> DrawnNode {
    DrawnNode { kind: "runs", label: format!("{sweep}: {count} runs, drawn as one"), count, id: None }
}

fn single(node: &Node, expansion: &Expansion) -> DrawnNode {
    let (kind, label, id) = match node {
        Node::Serve { endpoint, run } => {
            let settings = expansion.runs[*run].server_settings().map(|(flag, value)| format!(" {flag}={value}"));
            ("serve", format!("start {endpoint}{}", settings.collect::<String>()), None)
        }
        Node::Probe { endpoint, .. } => ("probe", format!("probe {endpoint}"), None),
        Node::Gate { sweep } => ("gate", format!("{sweep} has ended"), None),
        Node::Run(at) => {
            let run = &expansion.runs[*at];
            ("run", run_label(run), Some(run.id.short()))
        }
    };
    DrawnNode { kind, label, count: 1, id }
}

fn run_label(run: &PlannedRun) -> String {
    let cell = run.cell.iter().map(|(axis, value)| format!("{axis}={value}")).collect::<Vec<_>>().join(" ");
    format!("{}: {cell} repeat={}", run.sweep, run.repeat)
}

/// For Graphviz: `dot -Tsvg`.
pub fn dot(drawing: &Drawing) -> String {
    let mut out = String::from("digraph sweepline {\n  rankdir=LR;\n  node [shape=box];\n");
    for (at, node) in drawing.nodes.iter().enumerate() {
        let label = escape(&node.label, |c| match c {
            '"' | '\\' => Some(format!("\\{c}")),
            _ => None,
        });
        let shape = match node.kind {
            "gate" => ", shape=diamond",
            "serve" | "probe" => ", shape=ellipse",
            _ => "",
        };
        let _ = writeln!(out, "  n{at} [label=\"{label}\"{shape}];");
    }
    for (from, to) in &drawing.edges {
        let _ = writeln!(out, "  n{from} -> n{to};");
    }
    out + "}\n"
}

/// For Mermaid, as Markdown pages draw it.
pub fn mermaid(drawing: &Drawing) -> String {
    let mut out = String::from("flowchart LR\n");
    for (at, node) in drawing.nodes.iter().enumerate() {
        // Mermaid reads markup in labels; its own escapes are entity codes.
        let label = escape(&node.label, |c| match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' => Some(format!("#{};", u32::from(c))),
            _ => None,
        });
        let (open, close) = match node.kind {
            "gate" => ("{", "}"),
            "serve" | "probe" => ("(", ")"),
            _ => ("[", "]"),
        };
        let _ = writeln!(out, "  n{at}{open}\"{label}\"{close}");
    }
    for (from, to) in &drawing.edges {
        let _ = writeln!(out, "  n{from} --> n{to}");
    }
    out
}

/// As JSON: `nodes`, and `edges` as pairs of positions among them.
pub fn json(drawing: &Drawing) -> serde_json::Value {
    serde_json::json!(drawing)
}

/// `text` on one line, with the characters that `special` knows written in its way.
fn escape(text: &str, special: impl Fn(char) -> Option<String>) -> String {
    text.chars()
        .map(|c| if crate::units::text::is_unseen(c) { ' ' } else { c })
        .map(|c| special(c).unwrap_or_else(|| c.to_string()))
        .collect()
}
