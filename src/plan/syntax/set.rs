//! `--set path=value`: a value of the plan that is set on the command line and has a place, as in a
//! file.
//!
//! The arguments are the lines of a text called `--set`, so `--set:2:7` is the seventh character of the
//! second argument.

use std::ops::Range;

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::mask::Mask;
use crate::plan::diagnostic::suggest;
use crate::plan::syntax::{aliases, yaml};
use crate::plan::text::alias::alias;
use crate::plan::text::span::{Span, shifted};
use crate::plan::text::tree::{Dotted, Entry, Node, Step, Value};

/// Tables whose keys the plan chooses. An unknown key of such a table in `--set` is a typo.
const NAMES: [(&str, &str); 5] = [
    ("endpoints", "endpoint"),
    ("models", "model"),
    ("scenarios", "scenario"),
    ("sweeps", "sweep"),
    ("vars", "variable"),
];

/// One value and its destination.
pub(crate) struct Change {
    /// The path, each step with its place.
    steps: Vec<(Step, Span)>,
    /// The value.
    node: Node,
}

impl Change {
    /// Moves its places by `by` bytes.
    pub(crate) fn shift(mut self, by: usize) -> Change {
        self.steps.iter_mut().for_each(|(_, span)| *span = shifted(span.clone(), by));
        self.node.shift(by);
        self
    }
}

/// The parsed arguments.
pub(crate) struct Arguments {
    /// The arguments as a text, one per line.
    pub text: String,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// The errors, with places in the text.
    pub found: Vec<Diagnostic>,
    /// The hidden parts of the text.
    pub mask: Mask,
}

/// Parses arguments; each value has at most `most_nodes` nodes.
pub(crate) fn read(arguments: &[String], most_nodes: usize) -> Arguments {
    let mut all = Arguments { text: String::new(), changes: Vec::new(), found: Vec::new(), mask: Mask::default() };
    for (at, argument) in arguments.iter().enumerate() {
        if at > 0 {
            all.text.push('\n');
        }
        let start = all.text.len();
        // Each argument is one line; a line break inside an argument is rejected below, at its place.
        let line = argument.replace(['\n', '\r'], " ");
        all.text.push_str(&line);
        let read = if line == *argument { one(argument, most_nodes) } else { Err(vec![broken_line(argument)]) };
        let mut mask = Mask::new(&line, None);
        match read {
            Ok(change) => {
                mask.join(Mask::new(&line, Some(&change.as_tree())), 0);
                all.changes.push(change.shift(start));
            }
            Err(found) => all.found.extend(found.into_iter().map(|diagnostic| diagnostic.shift(start))),
        }
        all.mask.join(mask, start);
    }
    all
}

fn broken_line(argument: &str) -> Diagnostic {
    let at = argument.find(['\n', '\r']).unwrap_or(0);
    Diagnostic::new(Code::Set, "a value of --set must not contain line breaks")
        .at(Some(at..at + 1))
        .remedy("write it on one line; \"a\\nb\" is a string with a line break")
}

fn one(argument: &str, most_nodes: usize) -> Result<Change, Vec<Diagnostic>> {
    let (steps, value) = path(argument).map_err(|(at, message)| {
        let remedy = "write PATH=VALUE, like vars.measure=60s or sweeps.a.matrix.batch_size=[1,8]";
        vec![Diagnostic::new(Code::Set, message).at(Some(at)).remedy(remedy)]
    })?;
    let (node, mut found) = yaml::read(&argument[value..], most_nodes);
    let mut duplicates = Vec::new();
    let node = node.map(|mut node| {
        node.take_duplicates(&mut duplicates);
        node
    });
    found.extend(duplicates.into_iter().map(|twice| {
        Diagnostic::duplicate_key(&twice.key, twice.second, Some((twice.first, "first here".to_owned())))
    }));
    match node {
        Some(mut node) if found.is_empty() => {
            node.shift(value);
            Ok(Change { steps, node })
        }
        _ => Err(found.into_iter().map(|diagnostic| diagnostic.shift(value)).collect()),
    }
}

/// Steps with their places in the argument, and the start of the value.
type Way = (Vec<(Step, Span)>, usize);

/// The steps of a path such as `sweeps.a.matrix.batch_size[0]="a.b".c=`, and the start of the value.
fn path(argument: &str) -> Result<Way, (Range<usize>, String)> {
    let mut steps = Vec::new();
    let mut at = 0;
    loop {
        let rest = &argument[at..];
        let step = if let Some(inner) = rest.strip_prefix('[') {
            let digits = inner.find(']').ok_or((at..argument.len(), "the bracket `[` is not closed".to_owned()))?;
            let index = inner[..digits].parse::<usize>();
            let span = at..at + digits + 2;
            let index =
                index.map_err(|_| (span.clone(), format!("`{}` is not an index of a list", &inner[..digits])))?;
            (Step::Index(index), span)
        } else if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            let end = rest[1..].find(quote).ok_or((at..argument.len(), "a quote is not closed".to_owned()))?;
            (Step::Key(rest[1..=end].to_owned()), at..at + end + 2)
        } else {
            let end = rest.find(['.', '[', '=']).unwrap_or(rest.len());
            if rest[..end].trim().is_empty() {
                return Err((at..at + end.max(1), "the path has an empty step".to_owned()));
            }
            (Step::Key(rest[..end].trim().to_owned()), at..at + end)
        };
        at = step.1.end;
        steps.push(step);
        match argument[at..].chars().next() {
            Some('=') => return Ok((steps, at + 1)),
            Some('.') => at += 1,
            Some('[') => {}
            None => return Err((0..argument.len(), format!("`{argument}` has no value"))),
            Some(other) => return Err((at..at + other.len_utf8(), format!("unexpected `{other}` in the path"))),
        }
    }
}

impl Change {
    /// The value, nested under its path, to find the parts that must be hidden because of their names.
    fn as_tree(&self) -> Node {
        self.steps.iter().rev().fold(self.node.clone(), |node, (step, span)| {
            let key = step.to_string();
            Node::new(Value::Map(vec![Entry { key, key_span: span.clone(), node }]), span.clone())
        })
    }
}

/// Applies a change to the tree.
pub(crate) fn apply(tree: &mut Node, change: Change) -> Result<(), Box<Diagnostic>> {
    refuse_new_names(tree, &change.steps)?;
    let mut path: Vec<Step> = Vec::with_capacity(change.steps.len());
    for (step, _) in &change.steps {
        path.push(aliases::step(&path, step.clone()));
    }
    let mut node = tree;
    let last = change.steps.len() - 1;
    for (at, (_, span)) in change.steps.into_iter().enumerate() {
        let step = path[at].clone();
        if let Some(mistake) = leads_nowhere(&path[..at], &step, &node.value) {
            return Err(mistake.at(Some(span)).into());
        }
        node.spread();
        let in_matrix = at > 0 && path[at - 1] == Step::from("matrix");
        node = match (step, &mut node.value) {
            (Step::Index(index), Value::List(items)) => &mut items[index],
            (Step::Key(key), Value::Map(entries)) => enter(entries, key, span, in_matrix, at == last),
            _ => return Ok(()),
        };
    }
    *node = change.node;
    Ok(())
}

/// The value under a key, which is created if it does not exist. If the value is replaced, the key gets
/// the new place.
fn enter(entries: &mut Vec<Entry>, key: String, span: Span, in_matrix: bool, is_last: bool) -> &mut Node {
    let is_it = |entry: &Entry| {
        entry.key == key || in_matrix && (alias(&key) == Some(&entry.key) || alias(&entry.key) == Some(&key))
    };
    let at = entries.iter().position(is_it).unwrap_or_else(|| {
        let node = Node::new(Value::Map(Vec::new()), span.clone());
        entries.push(Entry { key: key.clone(), key_span: span.clone(), node });
        entries.len() - 1
    });
    let entry = &mut entries[at];
    if is_last {
        (entry.key, entry.key_span) = (key, span);
    }
    &mut entry.node
}

/// Reports a name that the plan does not contain, in tables where only existing names make sense.
fn refuse_new_names(tree: &Node, steps: &[(Step, Span)]) -> Result<(), Box<Diagnostic>> {
    let [(Step::Key(table), first), rest @ ..] = steps else { return Ok(()) };
    if table == "use" {
        let message = "`use` cannot be set: fragments are read before `--set` is applied";
        let remedy = "write it into the plan";
        return Err(Diagnostic::new(Code::Set, message).at(Some(first.clone())).remedy(remedy).into());
    }
    let (Some((_, what)), [(Step::Key(name), span), ..]) = (NAMES.iter().find(|(name, _)| name == table), rest) else {
        return Ok(());
    };
    let known: Vec<&str> = tree.get(table).map(|node| node.keys().collect()).unwrap_or_default();
    if known.contains(&name.as_str()) {
        return Ok(());
    }
    let remedy = match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => format!("the plan has no `{table}`: write it into the plan first"),
        None => format!("the plan has {}", suggest::choices(known).replace(" or ", " and ")),
    };
    let message = format!("unknown {what} `{name}`");
    Err(Diagnostic::new(Code::UnknownName, message).at(Some(span.clone())).remedy(remedy).into())
}

/// The error for a step that does not exist in a value; `None` if the step exists.
fn leads_nowhere(parents: &[Step], step: &Step, value: &Value) -> Option<Diagnostic> {
    let at = Dotted(parents).to_string();
    let (message, remedy) = match (step, value) {
        (Step::Key(_), Value::Map(_)) => return None,
        (Step::Index(index), Value::List(items)) if *index < items.len() => return None,
        (Step::Index(index), Value::List(items)) => {
            let message = format!("`{at}` has no element [{index}]: it has {}", items.len());
            (message, "the first one is [0]; to extend the list, set the whole list".to_owned())
        }
        (Step::Index(_), _) => {
            (format!("`{at}` is not a list"), format!("write `{at}` and a name, or replace the whole value"))
        }
        (Step::Key(key), Value::List(_)) => match key.parse::<usize>() {
            Ok(_) => (format!("`{at}` is a list, but `{key}` is a field name"), format!("write `{at}[{key}]`")),
            Err(_) => {
                (format!("`{at}` is a list and has no `{key}`"), "set the whole list, or an element: [0]".to_owned())
            }
        },
        (Step::Key(key), _) => (
            format!("`{at}` is a single value and has no field `{key}`"),
            format!("set the whole value: {at}={{{key}: …}}"),
        ),
    };
    Some(Diagnostic::new(Code::Set, message).remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dotted(argument: &str) -> Result<(String, &str), String> {
        path(argument)
            .map(|(steps, value)| {
                let steps: Vec<Step> = steps.into_iter().map(|(step, _)| step).collect();
                (Dotted(&steps).to_string(), &argument[value..])
            })
            .map_err(|(_, message)| message)
    }

    #[test]
    fn paths_are_keys_and_indexes() {
        for (argument, path, value) in [
            ("seed=1", "seed", "1"),
            ("sweeps.a.matrix.batch_size[12]=4", "sweeps.a.matrix.batch_size[12]", "4"),
            ("sweeps.a.exclude[0].model=x=y", "sweeps.a.exclude[0].model", "x=y"),
            ("endpoints.\"a.b=c\".url=u", "endpoints.a.b=c.url", "u"),
            ("name=", "name", ""),
            ("name =x", "name", "x"),
        ] {
            assert_eq!(dotted(argument), Ok((path.to_owned(), value)), "{argument}");
        }
        for wrong in ["", "=1", "seed", "a..b=1", "a[x]=1", "a[0=1", "a.'b=1", "a[0]b=1", ".a=1", "a.=1", "é"] {
            assert!(dotted(wrong).is_err(), "{wrong}");
        }
    }
}
