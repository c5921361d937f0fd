//! Reads a whole plan and reports every type error in it. serde stops at the first error. This module
//! records the error, removes it from the tree and reads the tree again, until there is a plan or nothing
//! is left.

use crate::plan::diagnostic::error::{Code, Diagnostic, MOST_MISTAKES};
use crate::plan::diagnostic::suggest;
use crate::plan::model::plan::Plan;
use crate::plan::read::reader::{Mistake, ReadError, read};
use crate::plan::read::remedy::quoted;
use crate::plan::read::wanted::Wanted;
use crate::plan::read::{other_tools, remedy};
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Dotted, Node, Step, Value};

/// A plan as far as it can be read, the tree without the errors, and the errors.
pub(crate) struct Recovered {
    /// The plan with placeholders for missing parts; `None` if it cannot be read even with these.
    pub plan: Option<Plan>,
    /// The tree from which the plan was read.
    pub tree: Node,
    /// The errors, in the order in which they were found.
    pub found: Vec<Diagnostic>,
}

/// Reads a plan from `tree`; messages quote `text`.
pub(crate) fn recover(mut tree: Node, text: &str) -> Recovered {
    let mut found = Vec::new();
    // Each error needs at most one round to remove it, and a few more to fill its gap.
    for _ in 0..MOST_MISTAKES * 8 {
        let error = match read::<Plan>(&tree) {
            Ok(plan) => return Recovered { plan: Some(plan), tree, found },
            Err(error) => error,
        };
        let path = error.path();
        found.extend(describe(&error, &path, &tree, text));
        if found.len() >= MOST_MISTAKES || !repair(&mut tree, &path, &error.mistake) {
            break;
        }
    }
    Recovered { plan: None, tree, found }
}

/// Changes the tree so that the same error does not recur; returns false if this is not possible.
fn repair(tree: &mut Node, path: &[Step], mistake: &Mistake) -> bool {
    if let Mistake::MissingField(field) = mistake {
        return fill(tree, path, field);
    }
    let Some(node) = tree.at_mut(path) else { return false };
    if !node.filler {
        return !path.is_empty() && tree.remove(path);
    }
    match next_filler(&node.value) {
        Some(value) => {
            node.value = value;
            true
        }
        // No placeholder fits, so the parent cannot be read either.
        None => path.split_last().is_some_and(|(_, parents)| tree.remove(parents)),
    }
}

/// Inserts a placeholder for a missing field, so that its siblings can be read.
fn fill(tree: &mut Node, path: &[Step], field: &str) -> bool {
    let Some(table) = tree.at_mut(path) else { return false };
    let span = table.span.clone();
    let Value::Map(entries) = &mut table.value else { return false };
    let mut node = Node::new(Value::Map(Vec::new()), span.clone());
    node.filler = true;
    entries.push(crate::plan::text::tree::Entry { key: field.to_owned(), key_span: span, node });
    true
}

/// The placeholder to try if a field does not accept the placeholder `value`; `None` if there are no more.
fn next_filler(value: &Value) -> Option<Value> {
    match value {
        Value::Map(_) => Some(Value::Text(String::new())),
        Value::Text(text) if text.is_empty() => Some(Value::Text("1s".to_owned())),
        Value::Text(_) => Some(Value::Int(1)),
        Value::Int(_) => Some(Value::Bool(true)),
        Value::Bool(_) => Some(Value::List(Vec::new())),
        _ => None,
    }
}

/// Describes the error in words; `None` if it is only a consequence of an error that was already reported.
pub(crate) fn describe(error: &ReadError, path: &[Step], tree: &Node, text: &str) -> Option<Diagnostic> {
    let at = tree.walk(path);
    if at.broken {
        return None;
    }
    let span = Some(at.span());
    let name = path.iter().rev().find_map(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Index(_) => None,
    });
    let name = name.unwrap_or("the plan");
    let written = tree.written(path);
    let diagnostic = match &error.mistake {
        Mistake::UnknownKey(expected) => unknown_key(path, name, expected, at.key_span.cloned(), tree),
        // The field had an error, or an unknown key was probably meant as this field.
        Mistake::MissingField(field) if was_meant(field, &at.node.holes) => return None,
        Mistake::MissingField(field) => missing(&written, field),
        // If a table has lost a field, an error of its type is a consequence of that loss.
        Mistake::Other(_) if at.node.is_damaged() => return None,
        Mistake::NoValue => Diagnostic::new(Code::NoValue, format!("`{}` has no value", Dotted(&written)))
            .remedy(remedy::of_nothing(path, tree, text)),
        // If the value of a choice had an error, the choice has lost its value.
        Mistake::UnknownChoice(_) if at.node.is_damaged() || !at.node.holes.is_empty() => return None,
        Mistake::UnknownChoice(expected) => {
            let near = match &at.node.value {
                Value::Text(text) => suggest::nearest(text, expected.iter().copied()),
                _ => None,
            };
            let choices = || suggest::choices(expected.iter().copied());
            let remedy = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None if matches!(path, [.., Step::Key(key)] if key == "engine") => {
                    format!("write {}; use `openai` for any other server that supports OpenAI's API", choices())
                }
                None => format!("write {}", choices()),
            };
            let message =
                format!("`{}` cannot be {}", Dotted(&written), shown(at.node, text).trim_start_matches("the text "));
            Diagnostic::new(Code::WrongValue, message).remedy(remedy)
        }
        // If a table has lost a required key, the error in this key has already been reported.
        Mistake::Other(_) if !at.node.holes.is_empty() => return None,
        Mistake::WrongType(expected) => wrong_type(at.node, &written, expected, text),
        Mistake::Other(message) => other(message, path),
    };
    Some(match &error.mistake {
        Mistake::UnknownKey(_) => diagnostic,
        // The plan as a whole has no name to point at, so the error points at the start of the text.
        Mistake::MissingField(_) if path.is_empty() => diagnostic.at(Some(0..0)),
        _ => diagnostic.at(span).with(at.related()),
    })
}

/// Splits a message of the unit types, which has the form "problem: remedy".
fn other(message: &str, path: &[Step]) -> Diagnostic {
    let is_secret = matches!(path, [.., Step::Key(key)] if key == "secret" || key == "api_key");
    let code = if is_secret { Code::Secret } else { Code::WrongValue };
    match message.split_once(": ") {
        Some((cause, remedy)) => Diagnostic::new(code, cause).remedy(remedy),
        None => Diagnostic::new(code, message),
    }
}

/// Whether a removed key was probably meant as this field.
fn was_meant(field: &str, holes: &[String]) -> bool {
    let glued = |hole: &String| {
        hole.strip_prefix(field).is_some_and(|rest| rest.starts_with(':')) || other_tools::stands_for(hole, field)
    };
    suggest::nearest(field, holes.iter().map(String::as_str)).is_some() || holes.iter().any(glued)
}

fn missing(path: &[Step], field: &str) -> Diagnostic {
    let message = match path {
        [] => format!("the plan has no `{field}`"),
        path => format!("`{}` has no `{field}`", Dotted(path)),
    };
    let remedy = match field {
        "sweepline" => "add `sweepline: 1`, the version of the plan format, as the first line".to_owned(),
        "name" => "add `name: ` and a short name for tables and reports".to_owned(),
        "endpoints" => "add the servers under test, like endpoints: { demo: { engine: mock } }".to_owned(),
        "models" => "add the models, like models: { demo: { id: demo } }".to_owned(),
        "sweeps" => "add what to run, like sweeps: { first: { matrix: { batch_size: [1, 8] } } }".to_owned(),
        "matrix" => "add the axes, like matrix: { endpoint: [...], model: [...], batch_size: [1, 8] }".to_owned(),
        "id" => "add `id: ` and the model's name as its server knows it".to_owned(),
        "valid" => "add `valid: ` and how long a token may be used after it was printed, like valid: 50m".to_owned(),
        field => format!("add `{field}`"),
    };
    Diagnostic::new(Code::MissingField, message).remedy(remedy)
}

fn unknown_key(path: &[Step], key: &str, expected: &[&'static str], span: Option<Span>, tree: &Node) -> Diagnostic {
    let parents = &path[..path.len().saturating_sub(1)];
    let message = match parents {
        [] => format!("unknown key `{key}` in the plan"),
        parents => format!("unknown key `{key}` in `{}`", Dotted(&tree.written(parents))),
    };
    let remedy = remedy::of_key(parents, key, expected, tree);
    let mut diagnostic = Diagnostic::new(Code::UnknownKey, message).at(span).remedy(remedy);
    diagnostic.covers = Some(tree.walk(path).node.extent());
    diagnostic
}

fn wrong_type(node: &Node, path: &[Step], wanted: &Wanted, text: &str) -> Diagnostic {
    let bound = match (wanted, &node.value) {
        (Wanted::Whole(_), Value::Int(number)) if *number < 0 => " without a sign".to_owned(),
        (Wanted::Whole(most), Value::Int(_)) => format!(" of at most {most}"),
        _ => String::new(),
    };
    let message = format!("`{}` must be {wanted}{bound}, not {}", Dotted(path), shown(node, text));
    let remedy = remedy::of_type(node, path, wanted, text);
    Diagnostic::new(Code::WrongType, message).remedy(remedy)
}

fn shown(node: &Node, text: &str) -> String {
    match &node.value {
        Value::Map(_) => "a table".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Null => "nothing".to_owned(),
        Value::Text(_) => format!("the text `{}`", quoted(node, text)),
        _ => format!("`{}`", quoted(node, text)),
    }
}
