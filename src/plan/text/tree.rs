//! The text of a plan as a tree of values with the places where they were written. Both YAML and TOML
//! are converted to such a tree; later code (reading, checking, places) does not distinguish them.

use std::fmt;

use crate::plan::text::alias::alias;
use crate::plan::text::span::{Span, shifted};

/// One step of a path into a plan, such as `sweeps`, `saturation`, `matrix`, `endpoint`, `[1]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// The key of an entry in a table.
    Key(String),
    /// The index of an element in a list, counted from 0.
    Index(usize),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Key(key) => f.write_str(key),
            Step::Index(index) => write!(f, "{index}"),
        }
    }
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Step::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Step::Index(index)
    }
}

/// A path as written by users: `sweeps.saturation.matrix.endpoint[1]`.
pub(crate) struct Dotted<'a>(pub &'a [Step]);

impl fmt::Display for Dotted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if at == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A value in the text of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// YAML's null, which is a key without a value.
    Null,
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A table, in the file's order.
    Map(Vec<Entry>),
}

/// A value and the place where it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// The value.
    pub value: Value,
    /// The place; for a table or list, at least its start.
    pub span: Span,
    /// The keys of entries that were removed because of errors; for a list, the indices as written.
    pub(crate) holes: Vec<String>,
    /// Whether this node is a placeholder for a missing or invalid value, so that reading can continue. An
    /// accepted plan contains no placeholders.
    pub(crate) filler: bool,
    /// Whether parts of the value are in other texts. `span` then already covers all parts in its own text.
    pub spread: bool,
    /// The variables that the template of the value used, each with the place of the variable's value.
    pub(crate) via: Vec<(String, Span)>,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// The key.
    pub key: String,
    /// The place where the key is written.
    pub(crate) key_span: Span,
    /// The value.
    pub node: Node,
}

/// A duplicate key in a table.
pub(crate) struct Duplicate {
    /// The key.
    pub key: String,
    /// The place of the first occurrence.
    pub first: Span,
    /// The place of the second occurrence.
    pub second: Span,
}

/// The result of following a path.
pub(crate) struct Found<'t> {
    /// The deepest existing node of the path.
    pub node: &'t Node,
    /// The key of the node, if it is in a table.
    pub(crate) key_span: Option<&'t Span>,
    /// Whether the path leads through a missing or invalid part that was already reported.
    pub broken: bool,
    /// Number of steps of the path that exist.
    pub depth: usize,
}

impl Found<'_> {
    /// The place to point at: the value, or the key of a table or list, whose own start would not help
    /// users.
    pub(crate) fn span(&self) -> Span {
        match (&self.node.value, self.key_span) {
            (Value::List(_) | Value::Map(_) | Value::Null, Some(key)) => key.clone(),
            _ => self.node.span.clone(),
        }
    }

    /// The variables that the template of the value used, which are shown with errors in the value.
    pub(crate) fn related(&self) -> impl Iterator<Item = (Span, String)> {
        self.node.via.iter().map(|(name, span)| (span.clone(), format!("`{name}` is set here")))
    }
}

impl Node {
    /// Creates a value with its place.
    pub(crate) fn new(value: Value, span: Span) -> Node {
        Node { value, span, holes: Vec::new(), filler: false, spread: false, via: Vec::new() }
    }

    /// The entry of a table; `None` if this is not a table with such a key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The value of a table's entry.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The value of a table's entry, mutable.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Map(entries) => entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node),
            _ => None,
        }
    }

    /// Removes an entry from a table without recording the removal.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        let Value::Map(entries) = &mut self.value else { return None };
        let at = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(at))
    }

    /// Marks a value as invalid and already reported.
    pub(crate) fn fail(&mut self) {
        self.value = Value::Map(Vec::new());
        self.filler = true;
    }

    /// The keys of a table.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.value {
            Value::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|entry| entry.key.as_str())
    }

    /// Moves the places of this value and everything below it by `by` bytes.
    pub(crate) fn shift(&mut self, by: usize) {
        self.span = shifted(self.span.clone(), by);
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|node| node.shift(by)),
            Value::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.key_span = shifted(entry.key_span.clone(), by);
                entry.node.shift(by);
            }),
            _ => {}
        }
    }

    /// Follows `path` as far as nodes exist. Also finds an axis under an alternative name, and a single
    /// value that stands for a list.
    pub(crate) fn walk(&self, path: &[Step]) -> Found<'_> {
        let mut found = Found { node: self, key_span: None, broken: self.filler, depth: 0 };
        for step in path {
            let (next, hole) = match (step, &found.node.value) {
                (Step::Key(key), _) => {
                    let entry = found.node.entry(key).or_else(|| found.node.entry(alias(key)?));
                    let hole = entry.is_none() && found.node.holes.contains(key);
                    (entry.map(|entry| (&entry.node, Some(&entry.key_span))), hole)
                }
                (Step::Index(index), Value::List(items)) => (items.get(*index).map(|node| (node, None)), false),
                // A single value may stand for a list.
                (Step::Index(0), _) => continue,
                (Step::Index(_), _) => (None, false),
            };
            match next {
                Some((node, key_span)) => {
                    found = Found { node, key_span, broken: found.broken || node.filler, depth: found.depth + 1 }
                }
                None => return Found { broken: found.broken || hole, ..found },
            }
        }
        found
    }

    /// The node at `path`, mutable.
    pub(crate) fn at_mut(&mut self, path: &[Step]) -> Option<&mut Node> {
        let mut node = self;
        for step in path {
            node = match (step, &mut node.value) {
                (Step::Key(key), Value::Map(entries)) => &mut entries.iter_mut().find(|entry| entry.key == *key)?.node,
                (Step::Index(index), Value::List(items)) => items.get_mut(*index)?,
                _ => return None,
            };
        }
        Some(node)
    }

    /// Removes the last step of `path` from the tree and records the removal; returns false if the step
    /// does not exist.
    pub(crate) fn remove(&mut self, path: &[Step]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let Some(parent) = self.at_mut(parents) else { return false };
        match (last, &mut parent.value) {
            (Step::Key(key), Value::Map(entries)) => {
                let Some(at) = entries.iter().position(|entry| entry.key == *key) else { return false };
                let removed = entries.remove(at).node.extent();
                parent.reach(removed.end);
                parent.holes.push(key.clone());
                true
            }
            (Step::Index(index), Value::List(items)) if *index < items.len() => {
                let removed = items.remove(*index).extent();
                parent.reach(removed.end);
                parent.holes.push(parent.place(*index).to_string());
                true
            }
            _ => false,
        }
    }

    /// The original index of the list element that is now at `index` after others were removed.
    fn place(&self, index: usize) -> usize {
        let mut holes: Vec<usize> = self.holes.iter().filter_map(|hole| hole.parse().ok()).collect();
        holes.sort_unstable();
        holes.into_iter().fold(index, |at, hole| if hole <= at { at + 1 } else { at })
    }

    /// A path of this tree as a user would write it: list indices refer to the text, in which no elements
    /// have been removed.
    pub(crate) fn written(&self, path: &[Step]) -> Vec<Step> {
        let mut node = Some(self);
        let mut written = Vec::with_capacity(path.len());
        for step in path {
            let (step, next) = match (step, node.map(|node| (node, &node.value))) {
                (Step::Index(index), Some((list, Value::List(items)))) => {
                    (Step::Index(list.place(*index)), items.get(*index))
                }
                (Step::Key(key), Some((table, _))) => (step.clone(), table.get(key)),
                _ => (step.clone(), None),
            };
            written.push(step);
            node = next;
        }
        written
    }

    /// Whether this node, or a node below it, is a placeholder or has lost an entry.
    pub(crate) fn is_damaged(&self) -> bool {
        self.filler
            || !self.holes.is_empty()
            || match &self.value {
                Value::List(items) => items.iter().any(Node::is_damaged),
                Value::Map(entries) => entries.iter().any(|entry| entry.node.is_damaged()),
                _ => false,
            }
    }

    /// The number of values in this node, including the node itself.
    pub(crate) fn count(&self) -> usize {
        1 + match &self.value {
            Value::List(items) => items.iter().map(Node::count).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.node.count()).sum(),
            _ => 0,
        }
    }

    /// The range from the start of this value to the end of its last part.
    pub(crate) fn extent(&self) -> Span {
        let end = |span: Span, node: &Node| span.start..span.end.max(node.extent().end);
        match &self.value {
            _ if self.spread => self.span.clone(),
            Value::List(items) => items.iter().fold(self.span.clone(), end),
            Value::Map(entries) => entries.iter().map(|entry| &entry.node).fold(self.span.clone(), end),
            _ => self.span.clone(),
        }
    }

    /// Stores the extent of this value as its place, before the value gets parts from another text.
    pub(crate) fn spread(&mut self) {
        self.span = self.extent();
        self.spread = true;
    }

    /// Extends the place of this value to the end of a part that is removed.
    fn reach(&mut self, end: usize) {
        if !self.spread {
            self.span.end = self.span.end.max(end);
        }
    }

    /// Removes every duplicate key from its table; the first occurrence stays.
    pub(crate) fn take_duplicates(&mut self, found: &mut Vec<Duplicate>) {
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|node| node.take_duplicates(found)),
            Value::Map(entries) => {
                let mut kept: indexmap::IndexMap<String, Entry> = indexmap::IndexMap::with_capacity(entries.len());
                for mut entry in entries.drain(..) {
                    if let Some(first) = kept.get(&entry.key) {
                        let first = first.key_span.clone();
                        found.push(Duplicate { key: entry.key, first, second: entry.key_span });
                        continue;
                    }
                    entry.node.take_duplicates(found);
                    kept.insert(entry.key.clone(), entry);
                }
                entries.extend(kept.into_values());
            }
            _ => {}
        }
    }
}
