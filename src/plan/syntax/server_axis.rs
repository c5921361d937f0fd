//! Expands the axis `server` of a matrix: maps of flags, as in `vllm bench sweep`, become values of axes
//! that set one flag each, `server.FLAG`. Later code sees only these axes.

use crate::plan::model::axis::SERVER_PREFIX;
use crate::plan::text::tree::{Entry, Node, Value};

/// The name of the axis, and of the table of flags in cells and conditions.
const SERVER: &str = "server";
/// The only key in a point of the axis that is not a flag.
const WHEN: &str = "when";

/// Creates a separate axis for every flag that a sweep sets.
pub(crate) fn settle(tree: &mut Node) {
    let Some(Value::Map(sweeps)) = tree.get_mut("sweeps").map(|node| &mut node.value) else { return };
    for sweep in sweeps {
        let Value::Map(fields) = &mut sweep.node.value else { continue };
        for field in fields {
            match field.key.as_str() {
                "matrix" => matrix(&mut field.node),
                "when" => cell(&mut field.node),
                "exclude" | "add" => each(&mut field.node, cell),
                "extend" => each(&mut field.node, |extend| {
                    let Value::Map(parts) = &mut extend.value else { return };
                    parts.iter_mut().for_each(|part| cell(&mut part.node));
                }),
                _ => {}
            }
        }
    }
}

fn each(node: &mut Node, mut settle: impl FnMut(&mut Node)) {
    if let Value::List(items) = &mut node.value {
        items.iter_mut().for_each(&mut settle);
    }
}

fn matrix(node: &mut Node) {
    let Value::Map(axes) = &mut node.value else { return };
    for axis in axes.iter_mut().filter(|axis| axis.key == SERVER) {
        match &mut axis.node.value {
            Value::List(items) => items.iter_mut().for_each(prefix),
            Value::Map(fields) if fields.iter().any(|field| field.key == WHEN) => prefix(&mut axis.node),
            Value::Map(fields) => {
                fields.iter_mut().filter(|field| field.key == "zip").for_each(|zip| prefix(&mut zip.node));
            }
            _ => {}
        }
    }
    // If `server` is neither a list nor a zip, its flags become axes of the matrix directly.
    splice(
        axes,
        |axis| matches!(&axis.node.value, Value::Map(fields) if fields.iter().all(|f| f.key != "zip" && f.key != WHEN)),
    );
    // Conditions may refer to flags anywhere.
    axes.iter_mut().for_each(|axis| conditions(&mut axis.node));
}

fn conditions(node: &mut Node) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(conditions),
        Value::Map(fields) => fields.iter_mut().filter(|field| field.key == WHEN).for_each(|when| cell(&mut when.node)),
        _ => {}
    }
}

/// Expands a table of fields by name, such as a cell or a condition.
fn cell(node: &mut Node) {
    if let Value::Map(fields) = &mut node.value {
        splice(fields, |field| matches!(field.node.value, Value::Map(_)));
    }
}

/// Replaces the entry `server` with its flags, if the entry exists and `is_table` is true for it.
fn splice(entries: &mut Vec<Entry>, is_table: impl Fn(&Entry) -> bool) {
    let Some(at) = entries.iter().position(|entry| entry.key == SERVER && is_table(entry)) else { return };
    let mut server = entries.remove(at);
    prefix(&mut server.node);
    if let Value::Map(flags) = server.node.value {
        entries.splice(at..at, flags);
    }
}

/// Renames the flags of a table to the names of their axes.
fn prefix(node: &mut Node) {
    let Value::Map(flags) = &mut node.value else { return };
    for flag in flags.iter_mut().filter(|flag| flag.key != WHEN && !flag.key.starts_with(SERVER_PREFIX)) {
        flag.key.insert_str(0, SERVER_PREFIX);
    }
}
