//! The state that all checks share: the tree in which paths are looked up, and the diagnostics.

use std::collections::{HashMap, HashSet};

use crate::plan::diagnostic::error::{Code, Diagnostic, MOST_MISTAKES};
use crate::plan::diagnostic::suggest;
use crate::plan::model::content::BUILT_IN;
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Node, Step, Value};
use crate::units::Decimal;

/// Maximum total number of steps of all searches for cells, so that they take only a fraction of a second.
/// Anything still undecided after that is assumed to be correct; any remaining errors are found when the plan
/// is expanded.
const MOST_STEPS: u64 = 5_000_000;

/// Maximum number of axis values in a plan, with every range expanded into its values.
pub(super) const MOST_VALUES: usize = 100_000;

/// Builds a path into the plan from names and indices.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { [$($crate::plan::text::tree::Step::from($step)),*] };
}
pub(super) use steps;

/// The state that all checks share.
pub(super) struct Checker<'t> {
    /// The tree of the plan's text, in which paths are looked up.
    pub(super) tree: &'t Node,
    /// The errors found so far.
    pub(super) found: Vec<Diagnostic>,
    /// Number of values that the axes of the plan may still have.
    pub(super) values_left: usize,
    /// Number of steps left for searches for cells. No plan written by hand comes close to the limit.
    pub(super) steps_left: u64,
    /// Whether the plan may refer to files outside its folder.
    pub(super) allow_outside: bool,
    /// For each table of the plan: the cached names that are allowed as values of an axis.
    names: HashMap<&'static str, HashSet<&'t str>>,
}

impl<'t> Checker<'t> {
    /// Creates a checker without diagnostics.
    pub(super) fn new(tree: &'t Node, allow_outside: bool) -> Checker<'t> {
        Checker {
            tree,
            found: Vec::new(),
            values_left: MOST_VALUES,
            steps_left: MOST_STEPS,
            allow_outside,
            names: HashMap::new(),
        }
    }

    /// Reports an error in the value at `path`, unless the value is already known to be wrong.
    pub(super) fn report(&mut self, path: &[Step], diagnostic: Diagnostic) {
        let found = self.tree.walk(path);
        if !found.broken {
            self.found.push(diagnostic.at(Some(found.span())).with(found.related()));
        }
    }

    /// Reports an error at the key of the value at `path`.
    pub(super) fn report_key(&mut self, path: &[Step], diagnostic: Diagnostic) {
        let found = self.tree.walk(path);
        if !found.broken {
            let span = found.key_span.cloned().unwrap_or_else(|| found.span());
            self.found.push(diagnostic.at(Some(span)));
        }
    }

    /// Reports a field of a table whose number or time is outside its range. `wrong` is the value, or `None`
    /// if the value is within its range.
    pub(super) fn outside(&mut self, table: &[Step], field: &str, wanted: &str, wrong: Option<impl std::fmt::Display>) {
        if let Some(value) = wrong {
            self.report(&[table, &steps![field]].concat(), out_of_range(field, wanted, value));
        }
    }

    /// Whether the file sets `key` in the table at exactly this path, whether or not the value is valid.
    pub(super) fn is_given(&self, parents: &[Step], key: &str) -> bool {
        let parent = self.tree.walk(parents);
        !parent.broken && (parent.node.entry(key).is_some() || parent.node.holes.iter().any(|hole| hole == key))
    }

    /// The names in a table of the plan, including those of invalid entries, because these are declared too.
    pub(super) fn declared(&self, table: &str) -> Vec<&'t str> {
        let Some(node) = self.tree.get(table) else { return Vec::new() };
        node.keys().chain(node.holes.iter().map(String::as_str)).collect()
    }

    /// The names that are allowed as values of an axis: the entries of `table`, and the built-in scenarios
    /// if the table is `scenarios`.
    pub(super) fn names(&self, table: &str) -> Vec<&'t str> {
        let built_in = BUILT_IN.iter().map(|(name, ..)| *name).filter(|_| table == "scenarios");
        self.declared(table).into_iter().chain(built_in).collect()
    }

    /// The names that are allowed as values of an axis, as a set for lookups.
    pub(super) fn known_names(&mut self, table: &'static str) -> &HashSet<&'t str> {
        if !self.names.contains_key(table) {
            let names = self.names(table).into_iter().collect();
            self.names.insert(table, names);
        }
        &self.names[table]
    }

    /// The place of the key of the value at `path`, with a label, to be shown next to an error.
    pub(super) fn key_of(&self, path: &[Step], what: &str) -> Option<(Span, String)> {
        let found = self.tree.walk(path);
        Some((found.key_span.cloned().unwrap_or_else(|| found.span()), what.to_owned()))
    }

    /// Reports a name that is not declared.
    pub(super) fn unknown_name(&mut self, path: &[Step], what: &str, name: &str, known: &[&str]) {
        let remedy = if known.is_empty() || self.found.len() > MOST_MISTAKES {
            format!("add {what} `{name}` to the plan")
        } else {
            let parts: Vec<&str> = name.split([',', ' ']).filter(|part| !part.is_empty()).collect();
            match suggest::nearest(name, known.iter().copied()) {
                None if parts.len() > 1 && parts.iter().all(|part| known.contains(part)) => {
                    format!("write a list: [{}]", parts.join(", "))
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the plan has {}", suggest::choices(known.iter().copied()).replace(" or ", " and ")),
            }
        };
        self.report(path, Diagnostic::new(Code::UnknownName, format!("unknown {what} `{name}`")).remedy(remedy));
    }

    /// Reports that a table, list or text must not be empty.
    pub(super) fn empty(&mut self, path: &[Step], message: impl Into<String>, remedy: &str) {
        let node = self.tree.walk(path).node;
        if node.holes.is_empty() && matches!(node.value, Value::List(_) | Value::Map(_) | Value::Text(_)) {
            self.report(path, Diagnostic::new(Code::Empty, message).remedy(remedy));
        }
    }
}

pub(super) fn is_negative(number: &Decimal) -> bool {
    *number < Decimal::default()
}

pub(super) fn is_not_positive(number: &Decimal) -> bool {
    !number.is_positive()
}

/// A diagnostic about a number or time outside its range.
pub(super) fn out_of_range(field: &str, wanted: &str, value: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::OutOfRange, format!("`{field}` must be {wanted}, not {value}"))
        .remedy(format!("write {wanted}, or remove the field"))
}
