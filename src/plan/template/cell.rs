//! Expressions that each cell evaluates: the texts of `launch` and `hooks`, and the values of `hardware`
//! and `server`.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::plan::diagnostic::suggest;
use crate::plan::template::convert::as_text;
use crate::plan::template::eval::{Evaluator, NAMES_OF_CELLS};
use crate::plan::template::segments::{Part, is_template, parts};
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Entry, Node, Value};

/// The name that stands for all flags of a server as arguments, written as a separate element of a
/// command.
const ARGS: &str = "server.args";

/// A value that expressions of a cell can use, or that they yield.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CellValue {
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
}

/// The names that expressions of a cell can use, with their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CellNames {
    /// Name and id of the model, as `model.name` and `model.id`.
    pub model: BTreeMap<String, CellValue>,
    /// Name and engine of the endpoint, as `endpoint.name` and `endpoint.engine`.
    pub endpoint: BTreeMap<String, CellValue>,
    /// The server's flags by name, as `server.max_num_seqs`.
    pub flags: BTreeMap<String, CellValue>,
    /// The server's other facts, as `server.version`; a flag with the same name takes precedence.
    pub facts: BTreeMap<String, CellValue>,
    /// The port. If it is unknown, expressions that use it stay as written.
    pub port: Option<u16>,
}

/// An error in an expression of a cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {remedy}")]
pub struct CellMistake {
    /// The error.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl CellMistake {
    fn new(message: impl Into<String>, remedy: impl Into<String>) -> CellMistake {
        CellMistake { message: message.into(), remedy: remedy.into() }
    }
}

/// A name that a text uses and that the cell defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The name, like `server.max_num_seqs`, or `port`.
    pub name: String,
    /// The place of its expression, in bytes of the text.
    pub at: Range<usize>,
}

/// Whether a text is the element that is replaced by all flags of a server.
pub(crate) fn is_args(text: &str) -> bool {
    let inner = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    inner.is_some_and(|inner| inner.trim() == ARGS)
}

/// The names that a text uses and that the cell defines.
pub(crate) fn asked(text: &str) -> Result<Vec<Asked>, CellMistake> {
    if !is_template(text) {
        return Ok(Vec::new());
    }
    let evaluator = Evaluator::new();
    let mut asked = Vec::new();
    for part in parts(text).map_err(|mistake| CellMistake::new(mistake.message, mistake.remedy))? {
        let Part::Expression(at) = part else { continue };
        let names = evaluator.dotted_names(&text[at.clone()]);
        let names = names.map_err(|mistake| CellMistake::new(mistake.message, mistake.remedy))?;
        asked.extend(names.into_iter().map(|name| Asked { name, at: at.clone() }));
    }
    Ok(asked)
}

/// Evaluates a text. If the text is a single expression, the value keeps its type.
pub(crate) fn fill(text: &str, names: &CellNames) -> Result<CellValue, CellMistake> {
    if !is_template(text) {
        return Ok(CellValue::Text(text.to_owned()));
    }
    let asked = asked(text)?;
    asked.iter().try_for_each(|asked| names.has(&asked.name))?;
    let waits_for_port = names.port.is_none() && asked.iter().any(|asked| asked.name == "port");
    let mut evaluator = names.evaluator();
    let wrong = |mistakes: Vec<super::segments::Mistake>| {
        let first = mistakes.into_iter().next();
        first.map_or_else(
            || CellMistake::new("the expression has no value", "make it return a value in every case"),
            |mistake| CellMistake::new(mistake.message, mistake.remedy),
        )
    };
    let made = match waits_for_port {
        true => evaluator.keeping_cells(text, &NOWHERE),
        false => evaluator.template(text, &NOWHERE),
    };
    let made = made.map_err(wrong)?.ok_or_else(|| wrong(Vec::new()))?;
    let nothing = || CellMistake::new(format!("`{text}` is neither a number nor a string"), "make it return one value");
    Ok(match made.value {
        Value::Bool(value) => CellValue::Bool(value),
        Value::Int(value) => CellValue::Int(value),
        Value::Float(value) => CellValue::Float(value),
        other => CellValue::Text(as_text(&other).ok_or_else(nothing)?),
    })
}

/// The place of values that come from a cell, which have no place in the plan's text.
const NOWHERE: Span = 0..0;

impl CellNames {
    /// Checks that the cell has a value for this name.
    pub(crate) fn has(&self, dotted: &str) -> Result<(), CellMistake> {
        let (root, part) = dotted.split_once('.').unwrap_or((dotted, ""));
        let (values, what): (&[&BTreeMap<String, CellValue>], &str) = match root {
            "model" => (&[&self.model], "a model has"),
            "endpoint" => (&[&self.endpoint], "an endpoint has"),
            "server" => (&[&self.flags, &self.facts], "the server of this cell has"),
            "port" if part.is_empty() => return Ok(()),
            _ => {
                let known = suggest::choices(NAMES_OF_CELLS).replace(" or ", " and ");
                let remedy = suggest::nearest(root, NAMES_OF_CELLS)
                    .map_or_else(|| format!("each cell defines {known}"), |near| format!("did you mean `{near}`?"));
                return Err(CellMistake::new(
                    format!("`{dotted}` is neither a variable nor defined by the cell"),
                    remedy,
                ));
            }
        };
        if values.iter().any(|values| values.contains_key(part)) {
            return Ok(());
        }
        if dotted == ARGS {
            let remedy = "write it as a separate element of `command`: \"{{ server.args }}\"";
            return Err(CellMistake::new("`server.args` expands to several arguments", remedy));
        }
        let known: Vec<&str> = values.iter().flat_map(|values| values.keys()).map(String::as_str).collect();
        let args = ARGS.split_once('.').filter(|(of, _)| *of == root).map(|(_, args)| args);
        let remedy = match suggest::nearest(part, known.iter().copied().chain(args)) {
            Some(near) => format!("did you mean `{root}.{near}`?"),
            None if known.is_empty() => {
                format!(
                    "add an axis {dotted}: [...] to the matrix, or declare it: server: {{ flags: {{ {part}: ... }} }}"
                )
            }
            None => format!("{what} {}", suggest::choices(known).replace(" or ", " and ")),
        };
        Err(CellMistake::new(format!("`{dotted}` has no value here"), remedy))
    }

    fn evaluator(&self) -> Evaluator {
        let mut evaluator = Evaluator::new();
        let mut define = |name: &str, node: Node| {
            evaluator.declare(name, NOWHERE);
            evaluator.define(name, &node);
        };
        let mut server = self.facts.clone();
        server.extend(self.flags.clone());
        for (name, values) in [("model", &self.model), ("endpoint", &self.endpoint), ("server", &server)] {
            let entry = |(key, value): (&String, &CellValue)| Entry {
                key: key.clone(),
                key_span: NOWHERE,
                node: Node::new(value.node(), NOWHERE),
            };
            define(name, Node::new(Value::Map(values.iter().map(entry).collect()), NOWHERE));
        }
        if let Some(port) = self.port {
            define("port", Node::new(Value::Int(port.into()), NOWHERE));
        }
        evaluator
    }
}

impl CellValue {
    fn node(&self) -> Value {
        match self {
            CellValue::Bool(value) => Value::Bool(*value),
            CellValue::Int(value) => Value::Int(*value),
            CellValue::Float(value) => Value::Float(*value),
            CellValue::Text(text) => Value::Text(text.clone()),
        }
    }
}

impl std::fmt::Display for CellValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CellValue::Bool(value) => value.fmt(f),
            CellValue::Int(value) => value.fmt(f),
            CellValue::Float(value) => value.fmt(f),
            CellValue::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(port: Option<u16>) -> CellNames {
        let of = |pairs: &[(&str, CellValue)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        CellNames {
            model: of(&[("id", CellValue::Text("meta/llama".into())), ("name", CellValue::Text("llama".into()))]),
            endpoint: of(&[("name", CellValue::Text("vllm".into()))]),
            flags: of(&[("tensor_parallel_size", CellValue::Int(4))]),
            facts: BTreeMap::new(),
            port,
        }
    }

    #[test]
    fn expressions_keep_their_type_and_the_port_stays_until_it_is_known() {
        let all = names(Some(8000));
        assert_eq!(fill("{{ server.tensor_parallel_size * 2 }}", &all), Ok(CellValue::Int(8)));
        assert_eq!(fill("{{ model.id }}:{{ port }}", &all), Ok(CellValue::Text("meta/llama:8000".into())));
        let kept = fill("{{ model.id }}:{{ port + 1 }}", &names(None));
        assert_eq!(kept, Ok(CellValue::Text("meta/llama:{{ port + 1 }}".into())));
        assert_eq!(fill("{{ server.tensor_parallel_size }}", &names(None)), Ok(CellValue::Int(4)));
        assert_eq!(fill("plain", &all), Ok(CellValue::Text("plain".into())));
    }

    #[test]
    fn what_does_not_exist_is_named_with_what_does() {
        let wrong = |text: &str| fill(text, &names(Some(1))).unwrap_err().to_string();
        assert_eq!(
            wrong("{{ server.tensor_paralel_size }}"),
            "`server.tensor_paralel_size` has no value here; did you mean `server.tensor_parallel_size`?"
        );
        assert_eq!(wrong("{{ model.path }}"), "`model.path` has no value here; a model has `id` and `name`");
        assert!(wrong("{{ server.arg }}").ends_with("did you mean `server.args`?"));
        assert!(wrong("x{{ server.args }}").starts_with("`server.args` expands to several arguments"));
        assert!(wrong("{{ hostname }}").contains("neither a variable nor defined by the cell"));
    }
}
