//! Renders a drawing as text, Graphviz, Mermaid or JSON.

use std::fmt::Write;

use super::drawn::{Drawing, DrawnNode};

/// Renders text for a terminal: a line for each node in execution order, with the runs of a search or a
/// ladder indented below it.
pub fn text(drawing: &Drawing) -> String {
    let mut out = String::new();
    let nodes = || drawing.nodes.iter().enumerate();
    let mut told = vec![false; drawing.nodes.len()];
    for (at, node) in nodes() {
        // A search is placed at its first run, with its runs and skipped loads below it.
        let head = node.asked_by.unwrap_or(at);
        if !std::mem::replace(&mut told[head], true) {
            line(&mut out, drawing, head, 0);
            for (under, _) in nodes().filter(|(_, node)| node.asked_by == Some(head)) {
                told[under] = true;
                line(&mut out, drawing, under, 1);
            }
        }
    }
    out
}

/// Writes one node as a line of text: state, label, outcome, and the sweeps that it waits for.
fn line(out: &mut String, drawing: &Drawing, at: usize, depth: usize) {
    let node = &drawing.nodes[at];
    let state = match node.state {
        Some(state) => state,
        None => node.kind,
    };
    let gates = drawing.edges.iter().filter(|(from, to)| *to == at && drawing.nodes[*from].kind == "gate");
    let gates: Vec<&str> = gates.map(|(from, _)| drawing.nodes[*from].label.as_str()).collect();
    let behind = if gates.is_empty() { String::new() } else { format!(" (when {})", gates.join(" and ")) };
    let indent = "  ".repeat(depth);
    let text = escape(&format!("{}{behind}", said(node)), |_| None);
    let _ = writeln!(out, "{indent}{state:<10}{text}");
}

/// The label of a node with its outcome.
fn said(node: &DrawnNode) -> String {
    match &node.said {
        Some(said) => format!("{}: {said}", node.label),
        None => node.label.clone(),
    }
}

/// Renders a graph for Graphviz, which `dot -Tsvg` can draw.
pub fn dot(drawing: &Drawing) -> String {
    let mut out = String::from("digraph sweepline {\n  rankdir=LR;\n  node [shape=box];\n");
    for (at, node) in drawing.nodes.iter().enumerate() {
        let label = escape(&said(node), |c| match c {
            '"' | '\\' => Some(format!("\\{c}")),
            _ => None,
        });
        let shape = match node.kind {
            "gate" => ", shape=diamond",
            "serve" | "probe" => ", shape=ellipse",
            "search" | "ladder" | "optimize" => ", shape=hexagon",
            _ => "",
        };
        let style = match node.state {
            Some("pending" | "partly") => ", style=dashed",
            Some("pruned" | "left_out") => ", style=dotted",
            Some("blocked" | "stopped" | "undecided") => ", style=dashed, color=red",
            Some("searching") => ", style=bold",
            Some("given_up") => ", color=red",
            _ => "",
        };
        let _ = writeln!(out, "  n{at} [label=\"{label}\"{shape}{style}];");
    }
    for (from, to) in &drawing.edges {
        let _ = writeln!(out, "  n{from} -> n{to};");
    }
    out + "}\n"
}

/// The states that are not drawn in Mermaid's default style, with their styles.
const CLASSES: [(&str, &str); 9] = [
    ("pending", "stroke-dasharray: 5 5"),
    ("partly", "stroke-dasharray: 5 5"),
    ("searching", "stroke-width: 3px"),
    ("pruned", "stroke-dasharray: 1 4, opacity: 0.6"),
    ("left_out", "stroke-dasharray: 1 4, opacity: 0.6"),
    ("given_up", "stroke: #c00"),
    ("blocked", "stroke: #c00, stroke-dasharray: 5 5"),
    ("stopped", "stroke: #c00, stroke-dasharray: 5 5"),
    ("undecided", "stroke: #c00, stroke-dasharray: 5 5"),
];

/// Renders a Mermaid flowchart, which can be embedded in Markdown pages.
pub fn mermaid(drawing: &Drawing) -> String {
    let mut out = String::from("flowchart LR\n");
    for (at, node) in drawing.nodes.iter().enumerate() {
        // Mermaid parses markup in labels, and uses entity codes to escape characters.
        let label = escape(&said(node), |c| match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' => Some(format!("#{};", u32::from(c))),
            _ => None,
        });
        let (open, close) = match node.kind {
            "gate" => ("{", "}"),
            "serve" | "probe" => ("(", ")"),
            "search" | "ladder" | "optimize" => ("{{", "}}"),
            _ => ("[", "]"),
        };
        let _ = writeln!(out, "  n{at}{open}\"{label}\"{close}");
    }
    for (from, to) in &drawing.edges {
        let _ = writeln!(out, "  n{from} --> n{to}");
    }
    for (state, style) in CLASSES {
        let nodes = drawing.nodes.iter().enumerate().filter(|(_, node)| node.state == Some(state));
        let nodes: Vec<String> = nodes.map(|(at, _)| format!("n{at}")).collect();
        if !nodes.is_empty() {
            let _ = writeln!(out, "  classDef {state} {style}\n  class {} {state}", nodes.join(","));
        }
    }
    out
}

/// Renders a drawing as JSON: its `nodes`, and its `edges` as pairs of positions among the nodes.
pub fn json(drawing: &Drawing) -> serde_json::Value {
    serde_json::json!(drawing)
}

/// Returns `text` on one line. Each character for which `special` returns a text is replaced by that text.
fn escape(text: &str, special: impl Fn(char) -> Option<String>) -> String {
    text.chars()
        .map(|c| if crate::units::text::is_unseen(c) { ' ' } else { c })
        .map(|c| special(c).unwrap_or_else(|| c.to_string()))
        .collect()
}
