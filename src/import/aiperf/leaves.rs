//! A configuration as a tree whose values carry their origin. A reader either reads a value, or lists it as
//! unneeded or as missing in the plan. Unread values are listed at the end, so that nothing is lost silently.

use std::cell::RefCell;

use indexmap::IndexMap;
use serde_json::Value;

use crate::import::notes::Notes;
use crate::import::said::Said;
use crate::import::secrets::{Secrets, names_headers};
use crate::import::tree::At as Field;
use crate::units::Decimal;

/// Maximum length of the text that represents a whole table or list, in characters.
const LONGEST: usize = 230;

/// How a value was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unread,
    Read,
    Told,
}

/// A value of the source, and how it was handled.
#[derive(Debug)]
struct Record {
    /// Name and value in displayable form.
    shown: String,
    /// The origin, as written after a value of the plan.
    origin: String,
    line: usize,
    fate: Fate,
    /// Whether any variation replaces the value.
    is_replaced: bool,
    /// The reasons listed so far; each reason is listed only once.
    told: Vec<String>,
}

/// All values of a source.
pub(super) struct Ledger<'a> {
    pub(super) notes: &'a Notes<'a>,
    records: RefCell<Vec<Record>>,
}

/// One value and its number in the ledger, which stays the same when the tree is copied or changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    pub(super) value: Value,
    pub(super) id: usize,
}

/// A tree of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    /// A value, or an empty table or list.
    Leaf(Leaf),
    /// A list.
    List(Vec<Tree>),
    /// A table.
    Map(IndexMap<String, Tree>),
}

impl<'a> Ledger<'a> {
    pub(super) fn new(notes: &'a Notes<'a>) -> Ledger<'a> {
        Ledger { notes, records: RefCell::default() }
    }

    /// Registers a value of a file.
    fn field(&self, at: Field, key: &str) -> Tree {
        let value = at.json();
        let origin = at.origin();
        let name = origin.split(", line ").next().unwrap_or_default().to_owned();
        let shown = format!("{name} = {}", self.notes.secrets.shown(key, &plain(&value)));
        self.take(shown, origin, value, at.line())
    }

    /// Registers a value that the `words` of a command specify.
    pub(super) fn option(&self, words: &str, value: Value, line: usize) -> Tree {
        self.take(words.to_owned(), words.to_owned(), value, line)
    }

    /// Creates an implied value, which is never listed.
    pub(super) fn made(&self, value: Value, line: usize) -> Tree {
        let tree = self.take(String::new(), "implied by the other options".to_owned(), value, line);
        if let Tree::Leaf(leaf) = &tree {
            self.mark(leaf.id, Fate::Told);
        }
        tree
    }

    fn take(&self, shown: String, origin: String, value: Value, line: usize) -> Tree {
        let mut records = self.records.borrow_mut();
        let id = records.len();
        records.push(Record { shown, origin, line, fate: Fate::Unread, is_replaced: false, told: Vec::new() });
        Tree::Leaf(Leaf { value, id })
    }

    /// Converts a field of a file, whose name is `key`, to a tree.
    pub(super) fn tree(&self, at: Field, key: &str) -> Tree {
        let (entries, items) = (at.entries(), if at.is_list() { at.list() } else { Vec::new() });
        if !entries.is_empty() {
            // All entries of a table of headers count as headers, so that their names are shown, but not
            // their values.
            let named = |own: &'_ str| if names_headers(key) { "headers".to_owned() } else { own.to_owned() };
            let each = |(own, at): (&str, Field)| (own.to_owned(), self.tree(at, &named(own)));
            return Tree::Map(entries.into_iter().map(each).collect());
        }
        match items.is_empty() {
            true => self.field(at, key),
            false => Tree::List(items.into_iter().map(|item| self.tree(item, key)).collect()),
        }
    }

    /// Records the value of an expression, so that it is shown after the expression.
    pub(super) fn evaluated(&self, leaf: &Leaf) {
        let record = &mut self.records.borrow_mut()[leaf.id];
        let raw = record.shown.split(" (here ").next().unwrap_or_default().to_owned();
        record.shown = format!("{raw} (here {})", plain(&leaf.value));
    }

    fn origin(&self, id: usize) -> String {
        self.records.borrow()[id].origin.clone()
    }

    fn mark(&self, id: usize, fate: Fate) {
        let record = &mut self.records.borrow_mut()[id];
        if fate == Fate::Told || record.fate == Fate::Unread {
            record.fate = fate;
        }
    }

    /// Returns one text with the names of all these values, and the line of the first value.
    fn together(&self, ids: &[usize], tree: &Tree) -> (String, usize) {
        let records = self.records.borrow();
        let line = ids.first().map_or(0, |id| records[*id].line);
        let shown = match (ids, tree) {
            ([only], Tree::Leaf(_)) => records[*only].shown.clone(),
            _ => ids.iter().map(|id| records[*id].shown.as_str()).collect::<Vec<_>>().join(", "),
        };
        (shown, line)
    }

    fn tell(&self, tree: &Tree, why: &str, how: fn(&Notes, &str, &str, usize)) {
        let mut ids = Vec::new();
        tree.ids(&mut ids);
        let (shown, line) = self.together(&ids, tree);
        // Implied values are not listed.
        if shown.is_empty() {
            return;
        }
        if shown.chars().count() > LONGEST && ids.len() > 1 {
            return tree.parts().into_iter().for_each(|part| self.tell(part, why, how));
        }
        let mut is_new = false;
        for id in &ids {
            let told = &mut self.records.borrow_mut()[*id].told;
            if !told.iter().any(|known| known == why) {
                told.push(why.to_owned());
                is_new = true;
            }
        }
        ids.iter().for_each(|id| self.mark(*id, Fate::Told));
        if is_new {
            how(self.notes, &shown, why, line);
        }
    }

    /// Records that another value replaces this tree.
    pub(super) fn replaced(&self, tree: &Tree) {
        let mut ids = Vec::new();
        tree.ids(&mut ids);
        ids.into_iter().for_each(|id| self.records.borrow_mut()[id].is_replaced = true);
    }

    /// Lists all unread values.
    pub(super) fn close(self) {
        for record in self.records.into_inner() {
            match record.fate {
                Fate::Unread if record.is_replaced => {
                    self.notes.needless(&record.shown, "every run of the sweep overrides it", record.line);
                }
                Fate::Unread if record.origin.starts_with("--") => {
                    let why = "no effect with the other options of this command";
                    self.notes.needless(&record.shown, why, record.line);
                }
                Fate::Unread => self.notes.missing(&record.shown, "unknown setting", record.line),
                _ => {}
            }
        }
    }
}

impl Tree {
    fn ids(&self, into: &mut Vec<usize>) {
        match self {
            Tree::Leaf(leaf) => into.push(leaf.id),
            other => other.parts().into_iter().for_each(|part| part.ids(into)),
        }
    }

    fn parts(&self) -> Vec<&Tree> {
        match self {
            Tree::Leaf(_) => Vec::new(),
            Tree::List(items) => items.iter().collect(),
            Tree::Map(entries) => entries.values().collect(),
        }
    }

    /// Returns the value under a key of a table.
    pub(super) fn get(&self, key: &str) -> Option<&Tree> {
        match self {
            Tree::Map(entries) => entries.get(key),
            _ => None,
        }
    }

    /// Returns the tree as JSON, without origins.
    pub(super) fn json(&self) -> Value {
        match self {
            Tree::Leaf(leaf) => leaf.value.clone(),
            Tree::List(items) => Value::Array(items.iter().map(Tree::json).collect()),
            Tree::Map(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (key.clone(), value.json())).collect())
            }
        }
    }

    /// Applies a function to all texts.
    pub(super) fn each_text<E>(&mut self, change: &mut impl FnMut(&mut Leaf) -> Result<(), E>) -> Result<(), E> {
        match self {
            Tree::Leaf(leaf) if leaf.value.is_string() => change(leaf),
            Tree::Leaf(_) => Ok(()),
            Tree::List(items) => items.iter_mut().try_for_each(|item| item.each_text(change)),
            Tree::Map(entries) => entries.values_mut().try_for_each(|value| value.each_text(change)),
        }
    }
}

/// Returns a value as text.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A place in a tree, possibly empty.
#[derive(Clone, Copy)]
pub(super) struct At<'t> {
    tree: Option<&'t Tree>,
    ledger: &'t Ledger<'t>,
}

impl<'t> At<'t> {
    pub(super) fn new(tree: &'t Tree, ledger: &'t Ledger<'t>) -> At<'t> {
        At { tree: Some(tree), ledger }
    }

    /// Returns an empty place with the same ledger.
    pub(super) fn nowhere(beside: At<'t>) -> At<'t> {
        At { tree: None, ..beside }
    }

    /// Returns the place of the value under a key.
    pub(super) fn get(self, key: &str) -> At<'t> {
        At { tree: self.tree.and_then(|tree| tree.get(key)), ..self }
    }

    /// Returns the place of the value under the first of these keys that is present.
    pub(super) fn first(self, keys: &[&str]) -> At<'t> {
        keys.iter().map(|key| self.get(key)).find(|at| at.is_there()).unwrap_or(At { tree: None, ..self })
    }

    /// Whether the place has a value other than null.
    pub(super) fn is_there(self) -> bool {
        !matches!(self.tree, None | Some(Tree::Leaf(Leaf { value: Value::Null, .. })))
    }

    pub(super) fn is_map(self) -> bool {
        matches!(self.tree, Some(Tree::Map(_)))
    }

    /// Returns copies of the elements of a list; a single value counts as a list.
    pub(super) fn trees(self) -> Vec<Tree> {
        self.each().into_iter().filter_map(|at| at.tree.cloned()).collect()
    }

    /// Returns the elements of a list; a single value counts as a list.
    pub(super) fn each(self) -> Vec<At<'t>> {
        match self.tree {
            Some(Tree::List(items)) => items.iter().map(|item| At { tree: Some(item), ..self }).collect(),
            Some(Tree::Leaf(Leaf { value: Value::Array(_) | Value::Null, .. })) | None => Vec::new(),
            Some(_) => vec![self],
        }
    }

    /// Returns the entries of a table.
    pub(super) fn entries(self) -> Vec<(&'t str, At<'t>)> {
        match self.tree {
            Some(Tree::Map(entries)) => {
                entries.iter().map(|(key, value)| (key.as_str(), At { tree: Some(value), ..self })).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the value as JSON, and marks it as read.
    pub(super) fn json(self) -> Option<Said<Value>> {
        let tree = self.tree.filter(|_| self.is_there())?;
        let mut ids = Vec::new();
        tree.ids(&mut ids);
        ids.iter().for_each(|id| self.ledger.mark(*id, Fate::Read));
        let origins: Vec<String> = ids.iter().take(4).map(|id| self.ledger.origin(*id)).collect();
        let more = if ids.len() > 4 { ", …" } else { "" };
        Some(Said { value: tree.json(), origin: format!("{}{more}", origins.join(", ")) })
    }

    /// Returns the single value, and marks it as read.
    fn scalar(self) -> Option<Said<Value>> {
        match self.tree {
            Some(Tree::Leaf(leaf)) if !leaf.value.is_null() && !leaf.value.is_array() && !leaf.value.is_object() => {
                self.ledger.mark(leaf.id, Fate::Read);
                Some(Said { value: leaf.value.clone(), origin: self.ledger.origin(leaf.id) })
            }
            Some(Tree::Leaf(Leaf { value: Value::Null, .. })) => {
                self.needless("null has no effect");
                None
            }
            Some(_) => {
                self.missing("expected one value");
                None
            }
            None => None,
        }
    }

    pub(super) fn text(self) -> Option<Said<String>> {
        Some(self.scalar()?.map(|value| plain(&value)))
    }

    fn parsed<T>(self, wanted: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<Said<T>> {
        let Said { value, origin } = self.text()?;
        let read = parse(value.trim());
        if read.is_none() {
            self.unreadable(&format!("expected {wanted}"));
        }
        Some(Said { value: read?, origin })
    }

    pub(super) fn number(self) -> Option<Said<Decimal>> {
        self.parsed("a number", |text| text.parse().ok())
    }

    /// Returns the value as a finite number.
    pub(super) fn float(self) -> Option<Said<f64>> {
        self.parsed("a number", |text| text.parse::<f64>().ok().filter(|value| value.is_finite()))
    }

    /// Returns the value as a whole number; `8.0` is accepted as 8.
    pub(super) fn whole(self) -> Option<Said<u64>> {
        self.parsed("a whole number", |text| {
            let float = || text.parse::<f64>().ok().filter(|value| value.fract() == 0.0 && (0.0..1e15).contains(value));
            text.parse().ok().or_else(|| float().map(|value| value as u64))
        })
    }

    pub(super) fn flag(self) -> Option<Said<bool>> {
        self.parsed("true or false", |text| match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        })
    }

    /// Returns a duration such as `300`, `"30s"`, `"5m"` or `"2h"` in seconds.
    pub(super) fn seconds(self) -> Option<Said<f64>> {
        self.parsed("a time, such as 300 or 5m", |text| {
            let units = [("ms", 0.001), ("s", 1.0), ("sec", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0)];
            let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
            let (number, unit) = (text[..at].trim(), text[at..].trim());
            let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
            let factor = if unit.is_empty() { Some(1.0) } else { factor };
            let value = number.parse::<f64>().ok()? * factor?;
            (value.is_finite() && value >= 0.0).then_some(value)
        })
    }

    /// Lists all values here as unneeded: sweepline does the same without a setting, or does it in another
    /// way.
    pub(super) fn needless(self, why: &str) {
        if let Some(tree) = self.tree {
            self.ledger.tell(tree, why, |notes, what, why, line| notes.needless(what, why, line));
        }
    }

    /// Lists all values here as settings that the plan contains with a different meaning.
    pub(super) fn differs(self, why: &str) {
        if let Some(tree) = self.tree {
            self.ledger.tell(tree, why, |notes, what, why, line| notes.differs(what, why, line));
        }
    }

    /// Records that the value is unreadable, which makes the import fail.
    fn unreadable(self, why: &str) {
        if let Some(tree) = self.tree {
            self.ledger.tell(tree, why, |notes, what, why, line| notes.wrong(what, why, line));
        }
    }

    /// Lists all values here as having no counterpart in a plan.
    pub(super) fn missing(self, why: &str) {
        if let Some(tree) = self.tree {
            let mut ids = Vec::new();
            tree.ids(&mut ids);
            for id in ids {
                let (shown, line) =
                    (self.ledger.records.borrow()[id].shown.clone(), self.ledger.records.borrow()[id].line);
                self.ledger.notes.lost(shown.split([' ', '=']).next().unwrap_or_default(), line);
            }
            self.ledger.tell(tree, why, |notes, what, why, line| notes.missing(what, why, line));
        }
    }

    /// Whether the value is an option of a command rather than a field of a file.
    pub(super) fn is_option(self) -> bool {
        let mut ids = Vec::new();
        self.tree.iter().for_each(|tree| tree.ids(&mut ids));
        let records = self.ledger.records.borrow();
        ids.iter().all(|id| records[*id].origin.starts_with("--"))
    }

    /// Returns the line, from 1; 0 if it is unknown.
    pub(super) fn line(self) -> usize {
        let mut ids = Vec::new();
        self.tree.iter().for_each(|tree| tree.ids(&mut ids));
        ids.first().map_or(0, |id| self.ledger.records.borrow()[*id].line)
    }

    /// Returns the place that errors show: the file, with the line if it is known.
    pub(super) fn place(self, file: &str) -> String {
        let line = self.line();
        if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
    }

    pub(super) fn notes(self) -> &'t Notes<'t> {
        self.ledger.notes
    }

    pub(super) fn secrets(self) -> &'t Secrets {
        self.ledger.notes.secrets
    }
}
