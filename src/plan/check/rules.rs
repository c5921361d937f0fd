//! Checks of the rules over a matrix: `when`, `exclude`, `extend` and `add`. Their matches are derived from
//! the axes. If axes depend on each other, a search with a limited number of steps looks for a matching cell.
//! The cells themselves are never built.

use std::collections::{BTreeMap, HashSet};

use super::checker::{Checker, steps};
use super::condition::{CheckedSweep, EXCLUDE, WHEN};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::matrix::grid::{Chosen, Query, Rule, Want};
use crate::plan::model::matrix::{Axis, Condition, Extend};
use crate::plan::model::scalar::Scalar;
use crate::plan::text::tree::Step;

/// The axes that every cell needs. Each entry contains the error for cells without these axes; if it lists
/// several axes, one of them is enough.
const NEEDED: [(&[&str], Code, &str); 4] = [
    (&["endpoint"], Code::MissingAxis, "have no endpoint"),
    (&["model"], Code::MissingAxis, "have no model"),
    (&["scenario"], Code::MissingAxis, "have no scenario"),
    (&["batch_size", "qps"], Code::NoLoad, "have no load: neither `batch_size` nor `qps`"),
];

impl Checker<'_> {
    /// Checks the rules of a sweep.
    pub(super) fn rules(&mut self, asked: &mut CheckedSweep) {
        let before = self.found.len();
        if let Some(when) = &asked.sweep.when {
            asked.keeps_nothing = !self.condition(asked, &steps!["when"], when, WHEN);
        }
        let asked = &*asked;
        self.conditions_of_axes(asked);
        for (index, exclude) in asked.sweep.exclude.iter().enumerate() {
            self.condition(asked, &steps!["exclude", index], exclude, EXCLUDE);
        }
        for (index, extend) in asked.sweep.extend.iter().enumerate() {
            self.extend(asked, index, extend);
        }
        // An earlier error may be the cause of any problem found from here on.
        let damaged = self.tree.walk(&steps!["sweeps", asked.name]).node.is_damaged();
        if self.found.len() == before && !damaged && !asked.lacks_axes && !asked.grid.axes.axes.is_empty() {
            self.all_excluded(asked);
            self.needed(asked);
            self.added(asked);
        }
    }

    fn conditions_of_axes(&mut self, asked: &CheckedSweep) {
        for (key, axis) in &asked.sweep.matrix {
            match axis {
                Axis::Zip(zip) => {
                    if let Some(when) = &zip.when {
                        self.condition(asked, &steps!["matrix", key.as_str(), "when"], when, WHEN);
                    }
                }
                Axis::Values(items) => {
                    for (index, when) in
                        items.iter().enumerate().filter_map(|(at, item)| Some((at, item.when.as_ref()?)))
                    {
                        self.condition(asked, &steps!["matrix", key.as_str(), index, "when"], when, WHEN);
                    }
                }
            }
        }
    }

    /// Reports a `when` or `exclude` that leaves no cell of the sweep.
    fn all_excluded(&mut self, asked: &CheckedSweep) {
        let (name, sweep) = (asked.name, asked.sweep);
        if sweep.exclude.is_empty() && sweep.when.is_none() {
            return;
        }
        let has_values = sweep.matrix.values().all(|axis| !axis.is_empty());
        let query = Query { wants: &[], with_excludes: true };
        if has_values && asked.grid.any(query, &mut self.steps_left, &mut |_| true) == Some(false) {
            let word = if sweep.exclude.is_empty() { "when" } else { "exclude" };
            let message = format!("`{word}` leaves no cell of sweep `{name}`");
            let remedy = "remove a rule, or add fields so that it matches fewer cells";
            self.report_key(&steps!["sweeps", name, word], Diagnostic::new(Code::AllExcluded, message).remedy(remedy));
        }
    }

    fn extend<'q>(&mut self, asked: &CheckedSweep<'q>, index: usize, extend: &'q Extend) {
        let at = steps!["extend", index];
        if !self.condition(asked, &[&at[..], &steps!["when"]].concat(), &extend.when, WHEN)
            || asked.lacks_axes
            || asked.keeps_nothing
        {
            return;
        }
        let mut wants = asked.wants(&extend.when);
        let query = Query { wants: &wants, with_excludes: true };
        if asked.grid.any(query, &mut self.steps_left, &mut |_| true) == Some(false) {
            let message = "this `extend` has no effect: every cell that it matches is excluded";
            let at = [&steps!["sweeps", asked.name], &at[..]].concat();
            return self.report_key(&at, Diagnostic::new(Code::DeadCondition, message).remedy("remove it"));
        }
        for field in extend.with.keys() {
            self.overrides(asked, index, field, &mut wants);
        }
    }

    /// Reports a field of an `extend` that a matching cell already has, from an axis or from an earlier
    /// `extend`.
    fn overrides<'q>(
        &mut self,
        asked: &CheckedSweep<'q>,
        index: usize,
        field: &str,
        wants: &mut Vec<(usize, Want<'q>)>,
    ) {
        let at = steps!["sweeps", asked.name, "extend", index, "with", field];
        if let Some(id) = asked.grid.axes.field(field) {
            wants.push((id, Want::Present));
            if self.is_there(asked, wants) {
                let message = format!("this `extend` sets `{field}`, but the matching cells already have it");
                let remedy =
                    format!("narrow its `when`, or write the value on axis `{field}`: {{ value: …, when: {{ … }} }}");
                self.report_key(&at, Diagnostic::new(Code::Overrides, message).remedy(remedy));
            }
            wants.pop();
        }
        let others = asked.sweep.extend[..index].iter().enumerate();
        for (first, other) in others.filter(|(_, other)| other.with.contains_key(field)) {
            let both = [&wants[..], &asked.wants(&other.when)].concat();
            if self.steps_left > 0 && self.is_there(asked, &both) {
                let message = format!("two `extend`s set `{field}` in the same cells");
                let remedy = "narrow the `when` of one of these `extend`s";
                let mut diagnostic = Diagnostic::new(Code::Overrides, message).remedy(remedy);
                let path = steps!["sweeps", asked.name, "extend", first, "with", field];
                diagnostic.related.extend(self.key_of(&path, "the first one"));
                return self.report_key(&at, diagnostic);
            }
        }
    }

    /// Whether some cell meets `wants`, within the limit of steps.
    pub(super) fn is_there(&mut self, asked: &CheckedSweep, wants: &[(usize, Want)]) -> bool {
        asked.grid.any(Query { wants, with_excludes: true }, &mut self.steps_left, &mut |_| true) == Some(true)
    }

    /// Reports cells without a field that every run needs, if only some cells lack it.
    fn needed(&mut self, asked: &CheckedSweep) {
        let name = asked.name;
        // A plan without its own scenarios uses a built-in one.
        let built_in = self.declared("scenarios").is_empty();
        for (axes, code, what) in NEEDED.into_iter().filter(|(axes, ..)| !built_in || *axes != ["scenario"]) {
            let ids: Vec<usize> = axes.iter().filter_map(|axis| asked.grid.axes.field(axis)).collect();
            let gives = |extend: &&Extend| axes.iter().any(|axis| extend.with.contains_key(*axis));
            let extends: Vec<(&Condition, Rule)> = asked
                .sweep
                .extend
                .iter()
                .filter(gives)
                .map(|extend| (&extend.when, Rule::new(&asked.grid.axes, &extend.when)))
                .collect();
            if ids.is_empty() && extends.is_empty() {
                continue; // No axis sets it, which is reported where the axes are checked.
            }
            let mut wants: Vec<(usize, Want)> = ids.iter().map(|id| (*id, Want::Absent)).collect();
            // Makes the search take into account the fields on which an `extend` depends.
            wants.extend(extends.iter().flat_map(|(when, _)| asked.wants(when)).map(|(id, _)| (id, Want::Any)));
            let query = Query { wants: &wants, with_excludes: true };
            let mut example = None;
            let mut lacks = |cell: &Chosen| {
                let lacks = !extends.iter().any(|(_, rule)| rule.matches(cell));
                example = lacks.then(|| shown(asked, cell));
                lacks
            };
            asked.grid.any(query, &mut self.steps_left, &mut lacks);
            if let Some(example) = example {
                let message = format!("some cells of sweep `{name}` {what}, such as {example}");
                let axes = axes.join("` or `");
                let remedy = format!("give these cells `{axes}` too, or remove them with `exclude`");
                let at = steps!["sweeps", name, "matrix"];
                self.report_key(&at, Diagnostic::new(code, message).remedy(remedy));
            }
        }
    }

    /// Reports cells of `add` that already exist.
    fn added(&mut self, asked: &CheckedSweep) {
        let extends: Vec<Rule> =
            asked.sweep.extend.iter().map(|extend| Rule::new(&asked.grid.axes, &extend.when)).collect();
        let mut seen: HashSet<BTreeMap<&str, &Scalar>> = HashSet::new();
        for (index, cell) in asked.sweep.add.iter().enumerate() {
            let at = steps!["sweeps", asked.name, "add", index];
            let whole: BTreeMap<&str, &Scalar> = cell.iter().map(|(axis, value)| (axis.as_str(), value)).collect();
            if !seen.insert(whole.clone()) {
                self.cell_twice(&at, "`add` already has this cell");
            } else if self.is_cell(asked, &whole, &extends) {
                self.cell_twice(&at, "the matrix already has this cell");
            }
        }
    }

    fn cell_twice(&mut self, at: &[Step], message: &str) {
        let remedy = "remove this cell; to give a cell more fields, use `extend`; to run it several times, use \
                      `repeats`";
        self.report_key(at, Diagnostic::new(Code::CellTwice, message).remedy(remedy));
    }

    /// Whether the matrix, including `extend`, has exactly this cell; false if there are no steps left.
    fn is_cell(&mut self, asked: &CheckedSweep, whole: &BTreeMap<&str, &Scalar>, extends: &[Rule]) -> bool {
        let names = &asked.grid.axes.names;
        let mut wants: Vec<(usize, Want)> = Vec::with_capacity(names.len());
        for (id, name) in names.iter().enumerate() {
            let is_extended = asked.sweep.extend.iter().any(|extend| extend.with.contains_key(*name));
            wants.push(match whole.get(name) {
                _ if is_extended => (id, Want::Any),
                Some(value) => (id, Want::Is(value)),
                None => (id, Want::Absent),
            });
        }
        let mut is_it = |cell: &Chosen| {
            let own = cell.fields.iter().flatten().map(|field| (names[field.name], &field.value));
            let with = extends.iter().zip(&asked.sweep.extend).filter(|(rule, _)| rule.matches(cell));
            let given = with.flat_map(|(_, extend)| extend.with.iter().map(|(axis, value)| (axis.as_str(), value)));
            let made: BTreeMap<&str, &Scalar> = own.chain(given).collect();
            made == *whole
        };
        asked.grid.any(Query { wants: &wants, with_excludes: true }, &mut self.steps_left, &mut is_it) == Some(true)
    }
}

/// Formats a cell as an example for a message, with the fields that a search has determined.
fn shown(asked: &CheckedSweep, cell: &Chosen) -> String {
    let mut fields: Vec<String> = Vec::new();
    for field in cell.fields.iter().flatten() {
        fields.push(format!("{}: {}", asked.grid.axes.names[field.name], field.value));
    }
    if fields.is_empty() { "the first".to_owned() } else { format!("{{ {} }}", fields.join(", ")) }
}
