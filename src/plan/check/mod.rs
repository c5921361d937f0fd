//! What only the whole plan shows: names that nothing has, values outside their range, fields that exclude each other.
//! Every mistake is addressed by its path in the plan; the tree says where that is written.

mod arrivals;
mod compare;
mod condition;
mod data;
mod endpoint;
mod extra;
mod lengths;
mod limits;
mod mix;
mod names;
mod pairs;
mod prefix;
mod profiled;
mod rules;
mod scenario;
mod sent;
mod sweep;
mod talk;
mod trace;
mod values;

use std::collections::{HashMap, HashSet};

use super::error::{Code, Diagnostic, MOST_MISTAKES};
use super::model::Plan;
use super::scenario::BUILT_IN;
use super::suggest;
use super::tree::{Node, Span, Step, Value};

/// Steps that searches for cells may take, all together: a fraction of a second. What they do not decide by then is
/// believed to be right, and found by the expansion.
const MOST_STEPS: u64 = 5_000_000;

/// A path into the plan from names and indices.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { [$($crate::plan::tree::Step::from($step)),*] };
}
use steps;

/// Checks a plan that was read from `tree`, and gives its matrices their one form: axes under their first names, those
/// that follow from the plan written out.
pub(super) fn check(plan: &mut Plan, tree: &Node) -> Vec<Diagnostic> {
    let mut checker = Checker {
        tree,
        found: Vec::new(),
        values_left: values::MOST_VALUES,
        steps_left: MOST_STEPS,
        names: Default::default(),
    };
    checker.head(plan);
    checker.endpoints(plan);
    checker.models(plan);
    checker.scenarios(plan);
    checker.limits(plan);
    checker.sweeps(plan);
    checker.comparisons(plan);
    checker.found
}

/// The tree that paths are looked up in, and what was found.
struct Checker<'t> {
    tree: &'t Node,
    found: Vec<Diagnostic>,
    /// How many more values the axes of the plan may have.
    values_left: usize,
    /// How many more steps searches for cells may take; no plan written by hand comes near.
    steps_left: u64,
    /// The names of tables, once looked up.
    names: HashMap<&'static str, HashSet<&'t str>>,
}

impl<'t> Checker<'t> {
    /// Notes a mistake at the value of a path, unless that is already known to be wrong.
    fn report(&mut self, path: &[Step], diagnostic: Diagnostic) {
        let found = self.tree.walk(path);
        if !found.broken {
            self.found.push(diagnostic.at(Some(found.span())).with(found.related()));
        }
    }

    /// Notes a mistake at the key of a path.
    fn report_key(&mut self, path: &[Step], diagnostic: Diagnostic) {
        let found = self.tree.walk(path);
        if !found.broken {
            let span = found.key_span.cloned().unwrap_or_else(|| found.span());
            self.found.push(diagnostic.at(Some(span)));
        }
    }

    /// Whether the file gives something at exactly this path, right or wrong.
    fn is_given(&self, parents: &[Step], key: &str) -> bool {
        let parent = self.tree.walk(parents);
        !parent.broken && (parent.node.entry(key).is_some() || parent.node.holes.iter().any(|hole| hole == key))
    }

    /// The names in a table of the plan, those of wrong entries too: they are declared all the same.
    fn declared(&self, table: &str) -> Vec<&'t str> {
        let Some(node) = self.tree.get(table) else { return Vec::new() };
        node.keys().chain(node.holes.iter().map(String::as_str)).collect()
    }

    /// The names that a value of an axis may have.
    fn names(&self, table: &str) -> Vec<&'t str> {
        let built_in = BUILT_IN.iter().map(|(name, ..)| *name).filter(|_| table == "scenarios");
        self.declared(table).into_iter().chain(built_in).collect()
    }

    /// The same names, to be looked up.
    fn known_names(&mut self, table: &'static str) -> &HashSet<&'t str> {
        if !self.names.contains_key(table) {
            let names = self.names(table).into_iter().collect();
            self.names.insert(table, names);
        }
        &self.names[table]
    }

    /// Where the key of a path is, with what it is, to be shown beside a mistake.
    fn key_of(&self, path: &[Step], what: &str) -> Option<(Span, String)> {
        let found = self.tree.walk(path);
        Some((found.key_span.cloned().unwrap_or_else(|| found.span()), what.to_owned()))
    }

    /// Reports a name that is in no table.
    fn unknown_name(&mut self, path: &[Step], what: &str, name: &str, known: &[&str]) {
        let remedy = if known.is_empty() || self.found.len() > MOST_MISTAKES {
            format!("add {what} `{name}` to the plan")
        } else {
            let parts: Vec<&str> = name.split([',', ' ']).filter(|part| !part.is_empty()).collect();
            match suggest::nearest(name, known.iter().copied()) {
                None if parts.len() > 1 && parts.iter().all(|part| known.contains(part)) => {
                    format!("write a list: [{}]", parts.join(", "))
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the plan knows {}", suggest::choices(known.iter().copied()).replace(" or ", " and ")),
            }
        };
        self.report(path, Diagnostic::new(Code::UnknownName, format!("there is no {what} `{name}`")).remedy(remedy));
    }

    /// Reports a table or list that must have something in it.
    fn empty(&mut self, path: &[Step], message: impl Into<String>, remedy: &str) {
        let node = self.tree.walk(path).node;
        if node.holes.is_empty() && matches!(node.value, Value::List(_) | Value::Map(_) | Value::Text(_)) {
            self.report(path, Diagnostic::new(Code::Empty, message).remedy(remedy));
        }
    }

    fn head(&mut self, plan: &Plan) {
        if plan.sweepline != 1 {
            let message = format!("this sweepline reads version 1 of the plan format, not {}", plan.sweepline);
            self.report(&steps!["sweepline"], Diagnostic::new(Code::Version, message).remedy("write sweepline: 1"));
        }
        if plan.name.trim().is_empty() {
            self.empty(&steps!["name"], "`name` is empty", "write a short name for tables and reports");
        }
        if plan.endpoints.is_empty() {
            let remedy = "add a server under test: demo: { engine: mock }";
            self.empty(&steps!["endpoints"], "`endpoints` is empty", remedy);
        }
        if plan.models.is_empty() {
            self.empty(&steps!["models"], "`models` is empty", "add a model: demo: { id: demo }");
        }
        if plan.sweeps.is_empty() {
            let remedy = "add what to run: first: { matrix: { batch_size: [1, 8] } }";
            self.empty(&steps!["sweeps"], "`sweeps` is empty", remedy);
        }
        for table in ["endpoints", "models", "scenarios", "sweeps"] {
            if self.tree.get(table).is_some_and(|node| node.keys().any(|key| key.trim().is_empty())) {
                let message = format!("a name in `{table}` is empty");
                self.report_key(&steps![table, ""], Diagnostic::new(Code::Empty, message).remedy("give it a name"));
            }
            for name in self.declared(table).into_iter().filter(|name| name.chars().any(char::is_control)) {
                let message = format!("a name in `{table}` holds a line break or another control character");
                let remedy = "names stand in tables: write it in one line of plain text";
                self.report_key(&steps![table, name], Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
            }
        }
    }
}

/// A number or time outside its range.
fn out_of_range(field: &str, wanted: &str, value: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::new(Code::OutOfRange, format!("`{field}` must be {wanted}, not {value}"))
        .remedy(format!("write {wanted}, or remove it"))
}
