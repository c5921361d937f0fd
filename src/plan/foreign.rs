//! Parses YAML and TOML files that are not plans into trees with line numbers, for `import`.

use crate::plan::syntax::{toml, yaml};
use crate::plan::text::format::Format;
use crate::plan::text::tree::{Duplicate, Node, Value as Written};

/// A value in a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A key without a value.
    Null,
    /// A true or false value.
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Placed>),
    /// A table, in the file's order.
    Table(Vec<(String, Placed)>),
}

/// A value and its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The line at which the value starts, counted from 1; for an entry of a table, the line of the key.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// A parse error: where it is and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The line, counted from 1.
    pub line: usize,
    /// The error message.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

/// Parses a text into a tree with at most `most_values` values. A duplicate key in a table is an error,
/// because one of the two values would be lost.
pub fn tree(text: &str, format: Format, most_values: usize) -> Result<Placed, Wrong> {
    let lines = Lines::of(text);
    let (node, found) = match format {
        Format::Yaml => yaml::read(text, most_values),
        Format::Toml => toml::read(text, most_values),
    };
    if let Some(one) = found.first() {
        let line = lines.line(one.span.as_ref().map_or(0, |span| span.start));
        let remedy = one.remedy.clone().unwrap_or_else(|| "fix it there".to_owned());
        return Err(Wrong { line, message: one.message.clone(), remedy });
    }
    let mut node = node.unwrap_or_else(|| Node::new(Written::Null, 0..0));
    let mut twice: Vec<Duplicate> = Vec::new();
    node.take_duplicates(&mut twice);
    match twice.first() {
        None => Ok(placed(&node, &lines)),
        Some(one) => Err(Wrong {
            line: lines.line(one.second.start),
            message: format!("duplicate key `{}` in a table", one.key),
            remedy: "remove one of them".to_owned(),
        }),
    }
}

/// The byte positions at which lines start.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn line(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte)
    }
}

fn placed(node: &Node, lines: &Lines) -> Placed {
    let value = match &node.value {
        Written::Null => Value::Null,
        Written::Bool(value) => Value::Bool(*value),
        Written::Int(number) => Value::Number(number.to_string()),
        Written::Float(number) => Value::Number(number.to_string()),
        Written::Text(text) => Value::Text(text.clone()),
        Written::List(items) => Value::List(items.iter().map(|item| placed(item, lines)).collect()),
        Written::Map(entries) => {
            let entry = |entry: &crate::plan::text::tree::Entry| {
                let line = lines.line(entry.key_span.start);
                (entry.key.clone(), Placed { line, ..placed(&entry.node, lines) })
            };
            Value::Table(entries.iter().map(entry).collect())
        }
    };
    Placed { line: lines.line(node.span.start), value }
}
