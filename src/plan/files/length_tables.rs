//! Normalizes the written forms of lengths before the plan is read, so that later code need not handle them.
//! `base: lengths` is replaced by its long form, and a table in a CSV file is inserted into the tree, with
//! the place of every number in that file.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::files::loader::Loader;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Entry, Node, Value};

/// The name of the base that stands for B1 with `lengths`.
const BASE: &str = "lengths";

/// The columns of a joint histogram of prompts and responses.
const JOINT: [&str; 5] = ["prompt_min", "prompt_max", "output_min", "output_max", "weight"];

/// Maximum number of errors that are reported for one file.
const MOST_TOLD: usize = 20;

/// Converts lengths to their long form and reads their tables.
pub(crate) fn settle(tree: &mut Node, loader: &mut Loader<'_>) {
    let Some(Value::Map(entries)) = tree.at_mut(&["scenarios".into()]).map(|node| &mut node.value) else { return };
    let has_own = entries.iter().any(|entry| entry.key == BASE);
    let mut files = Files { loader, read: HashMap::new() };
    for scenario in entries {
        if !has_own {
            based(&mut scenario.node, &mut files.loader.found);
        }
        let Some(lengths) = scenario.node.at_mut(&["lengths".into()]) else { continue };
        files.inline(lengths, "pairs", Columns { needed: &["prompt", "output"], optional: &["weight"] });
        files.inline(lengths, "histogram", Columns { needed: &JOINT, optional: &[] });
        for side in ["prompt", "output"] {
            if let Some(side) = lengths.at_mut(&[side.into()]) {
                files.inline(side, "histogram", Columns { needed: &["min", "max", "weight"], optional: &[] });
            }
        }
    }
}

/// Converts `{ base: lengths, preset: chat }` to `{ lengths: { preset: chat } }`.
fn based(scenario: &mut Node, found: &mut Vec<Diagnostic>) {
    if !matches!(scenario.get("base"), Some(Node { value: Value::Text(base), .. }) if base == BASE) {
        return;
    }
    let Some(base) = scenario.take("base") else { return };
    let given: Vec<Entry> = ["preset", "shape"].into_iter().filter_map(|key| scenario.take(key)).collect();
    match (given.first(), scenario.entry("lengths")) {
        (Some(first), Some(own)) => {
            let message = format!("`{}` and `lengths` both set the lengths", first.key);
            let own = (own.key_span.clone(), "lengths are also set here".to_owned());
            let diagnostic = Diagnostic::new(Code::Contradiction, message).at(Some(first.key_span.clone()));
            found.push(diagnostic.with([own]).remedy("keep one of the two"));
        }
        (None, Some(_)) => {}
        (_, None) => {
            let node = Node::new(Value::Map(given), base.node.span);
            if let Value::Map(fields) = &mut scenario.value {
                fields.push(Entry { key: "lengths".to_owned(), key_span: base.key_span, node });
            }
        }
    }
}

/// The columns of a table.
#[derive(Clone, Copy)]
struct Columns {
    needed: &'static [&'static str],
    optional: &'static [&'static str],
}

impl Columns {
    fn all(&self) -> impl Iterator<Item = &'static str> {
        self.needed.iter().chain(self.optional).copied()
    }
}

/// The files that contain tables, each read once.
struct Files<'l, 'f> {
    loader: &'l mut Loader<'f>,
    read: HashMap<PathBuf, Option<Span>>,
}

/// A cell of a line, without surrounding space, and its place.
type Field<'t> = (&'t str, Span);

impl Files<'_, '_> {
    /// Replaces the path of a file with the file's table, if `parent` has such a path under `key`.
    fn inline(&mut self, parent: &mut Node, key: &str, columns: Columns) {
        let Some(node) = parent.at_mut(&[key.into()]) else { return };
        let Value::Text(written) = &node.value else { return };
        match self.table(&written.clone(), &node.span, columns) {
            Some(rows) => node.value = Value::List(rows),
            None => node.fail(),
        }
        node.spread = true;
    }

    /// The rows of the file `written`, which is named at `span`. Reports the errors of the file.
    fn table(&mut self, written: &str, span: &Span, columns: Columns) -> Option<Vec<Node>> {
        let place = match self.text(written, span) {
            Ok(place) => place?,
            Err(diagnostic) => {
                self.loader.found.push((*diagnostic).at(Some(span.clone())));
                return None;
            }
        };
        let text = self.loader.sources.text()[place.clone()].to_owned();
        let mut told = Vec::new();
        let rows = rows(&text, place.start, columns, &mut told);
        let few = told.is_empty();
        if few && rows.is_empty() {
            let message = format!("the file `{written}` has no rows");
            let remedy = "write one line per row below the column names";
            told.push(Diagnostic::new(Code::Empty, message).at(Some(span.clone())).remedy(remedy));
        } else if few && !self.loader.take_nodes(rows.iter().map(Node::count).sum()) {
            let message = format!("with the {} rows of `{written}` the plan has too many values", rows.len());
            let remedy = "use fewer, wider buckets";
            told.push(Diagnostic::new(Code::TooLarge, message).at(Some(span.clone())).remedy(remedy));
        }
        let is_good = told.is_empty();
        self.loader.found.extend(told);
        is_good.then_some(rows)
    }

    /// The place of a file's text; `None` if a read error was already reported.
    fn text(&mut self, written: &str, span: &Span) -> Result<Option<Span>, Box<Diagnostic>> {
        let (path, canonical) = self.loader.locate(written, span)?;
        if let Some(known) = self.read.get(&canonical) {
            return Ok(known.clone());
        }
        let place = self.loader.add_text(&path, written);
        self.read.insert(canonical, place.as_ref().ok().cloned());
        place.map(Some)
    }
}

/// The rows of a CSV text that begins at byte `start` of the concatenated texts. Each row is a table keyed by
/// the column names.
fn rows(text: &str, start: usize, columns: Columns, told: &mut Vec<Diagnostic>) -> Vec<Node> {
    let mut lines = lines(text, start);
    let Some((_, header)) = lines.next() else { return Vec::new() };
    told.extend(header_mistakes(&header, columns));
    let mut rows = Vec::new();
    for (place, fields) in lines {
        if told.len() >= MOST_TOLD || told.iter().any(|one| one.code != Code::WrongType) {
            break;
        }
        if fields.len() != header.len() {
            let message = format!("this line has {} values, but the header has {}", fields.len(), header.len());
            let remedy = "write one value for each column, with commas between them";
            told.push(Diagnostic::new(Code::WrongType, message).at(Some(place)).remedy(remedy));
            continue;
        }
        let entries = header.iter().zip(fields).filter_map(|((name, head), (value, at))| match number(value) {
            Some(value) => Some(Entry { key: (*name).to_owned(), key_span: head.clone(), node: Node::new(value, at) }),
            None => {
                let message = format!("`{name}` must be a number, not `{value}`");
                told.push(Diagnostic::new(Code::WrongType, message).at(Some(at)).remedy("write digits only, like 12"));
                None
            }
        });
        rows.push(Node::new(Value::Map(entries.collect()), place));
    }
    rows
}

/// The lines of a CSV text, except empty lines and `#` comments, each with its place and its cells.
fn lines(text: &str, start: usize) -> impl Iterator<Item = (Span, Vec<Field<'_>>)> {
    let mut next = 0;
    let all = text.split_inclusive('\n').map(move |line| {
        let at = next;
        next += line.len();
        (at, line)
    });
    let kept = all.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    kept.map(move |(at, line)| {
        let line = line.trim_end();
        let mut from = at;
        let fields = line.split(',').map(|cell| {
            let inner = trimmed(cell, from);
            from += cell.len() + 1;
            (&text[inner.clone()], start + inner.start..start + inner.end)
        });
        (start + at..start + at + line.len(), fields.collect())
    })
}

/// The range of a cell that starts at `from`, without surrounding space and quotes, and without a byte order
/// mark.
fn trimmed(cell: &str, from: usize) -> Range<usize> {
    let is_around = |c: char| c.is_whitespace() || c == '"' || c == '\u{feff}';
    let left = cell.len() - cell.trim_start_matches(is_around).len();
    from + left..from + left.max(cell.trim_end_matches(is_around).len())
}

fn number(text: &str) -> Option<Value> {
    match text.parse::<i128>() {
        Ok(value) => Some(Value::Int(value)),
        Err(_) => text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Float),
    }
}

/// Returns the errors in the column names.
fn header_mistakes(header: &[Field<'_>], columns: Columns) -> Vec<Diagnostic> {
    let all: Vec<&str> = columns.all().collect();
    let wanted = all.join(",");
    let mut found = Vec::new();
    for (at, (name, place)) in header.iter().enumerate() {
        let diagnostic = match () {
            () if header[..at].iter().any(|(other, _)| other == name) => {
                Diagnostic::new(Code::DuplicateKey, format!("duplicate column `{name}`")).remedy("keep one")
            }
            () if !all.contains(name) => {
                let near = suggest::nearest(name, all.iter().copied());
                let remedy = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the first line names the columns: {wanted}"),
                };
                Diagnostic::new(Code::UnknownKey, format!("a table of these lengths has no column `{name}`"))
                    .remedy(remedy)
            }
            () => continue,
        };
        found.push(diagnostic.at(Some(place.clone())));
    }
    let missing = columns.needed.iter().find(|name| !header.iter().any(|(own, _)| own == *name));
    if let (Some(name), true, Some((_, first))) = (missing, found.is_empty(), header.first()) {
        let message = format!("the column `{name}` is missing");
        let remedy = format!("the first line names the columns: {wanted}");
        found.push(Diagnostic::new(Code::MissingField, message).at(Some(first.clone())).remedy(remedy));
    }
    found
}
