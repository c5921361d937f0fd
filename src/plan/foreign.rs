//! Files that are no plans and are written in YAML or TOML all the same: `import` reads them as trees that know their lines.

use crate::plan::syntax::{toml, yaml};
use crate::plan::text::format::Format;
use crate::plan::text::tree::{Duplicate, Node, Value as Written};

/// A value of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A key without a value.
    Null,
    /// true or false.
    Bool(bool),
    /// A number, in digits.
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
    /// The line that it begins in, from 1; of a table's entry, that of its key.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// Why a text is no tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// The tree of a text of at most so many values. A key that stands twice in a table is an error: one of them would get lost.
pub fn tree(text: &str, format: Format, most_values: usize) -> Result<Placed, Wrong> {
    let lines = Lines::of(text);
    let (node, found) = match format {
        Format::Yaml => yaml::read(text, most_values),
        Format::Toml => toml::read(text, most_values),
    };
    if let Some(one) = found.first() {
        let line = lines.line(one.span.as_ref().map_or(0, |span| span.start));
        let remedy = one.remedy.clone().unwrap_or_else(|| "correct it there".to_owned());
        return Err(Wrong { line, message: one.message.clone(), remedy });
    }
    let mut node = node.unwrap_or_else(|| Node::new(Written::Null, 0..0));
    let mut twice: Vec<Duplicate> = Vec::new();
    node.take_duplicates(&mut twice);
    match twice.first() {
        None => Ok(placed(&node, &lines)),
        Some(one) => Err(Wrong {
            line: lines.line(one.second.start),
            message: format!("the key `{}` stands twice in its table", one.key),
            remedy: "take one of them away".to_owned(),
        }),
    }
}

/// Where lines begin.
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
