//! The edits between two plans: the edited value, its old and new content, and its place.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::expand::{Difference, PlannedRun, origin};
use crate::plan::Step;

use super::source::Side;

/// The kind of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The value changed.
    Changed,
    /// The value was added.
    Added,
    /// The value was removed.
    Removed,
}

/// One edit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub(crate) struct Edit {
    /// The kind of edit.
    pub kind: Kind,
    /// The value's path in the plan, like sweeps.rates.matrix.qps[1].
    pub path: String,
    /// The old value; null if there was none, or if it is a table.
    pub old: Option<String>,
    /// The new value; null if there is none, or if it is a table.
    pub new: Option<String>,
    /// Place of the old value or its nearest parent, as file:line:column; null if the old plan has no such
    /// place.
    pub(crate) old_place: Option<String>,
    /// Place of the new value or its nearest parent, as file:line:column; null if the new plan has no such
    /// place.
    pub place: Option<String>,
}

/// A plan as a tree of values, for lookup by path.
pub(crate) struct Values(Value);

impl Values {
    /// Returns the values of a plan. Secrets appear only as references.
    pub(crate) fn of(side: &Side) -> Values {
        let mut plan = serde_json::to_value(&side.loaded.plan).unwrap_or(Value::Null);
        // The loaded plan also lists the loads of each search, which follow from the range of the search.
        // They are removed, so that only the range is compared.
        for sweep in
            plan.get_mut("sweeps").and_then(Value::as_object_mut).into_iter().flat_map(|sweeps| sweeps.values_mut())
        {
            for axis in ["qps", "batch_size"] {
                let is_searched =
                    sweep.get("search").and_then(|search| search.get(axis)).is_some_and(|range| !range.is_null());
                if let Some(matrix) = sweep.get_mut("matrix").and_then(Value::as_object_mut).filter(|_| is_searched) {
                    matrix.remove(axis);
                }
            }
        }
        Values(plan)
    }

    /// Returns the value at `path`; `None` if there is none. A single value may represent a list with one
    /// item.
    pub(crate) fn at(&self, path: &[Step]) -> Option<&Value> {
        path.iter().try_fold(&self.0, |value, step| match (step, value) {
            (Step::Key(key), value) => value.get(key),
            (Step::Index(index), Value::Array(items)) => items.get(*index),
            (Step::Index(0), value) if !value.is_object() => Some(value),
            (Step::Index(_), _) => None,
        })
    }

    /// Returns every value that is not a table, with its path. A list is one value.
    fn leaves(&self) -> BTreeMap<Vec<String>, &Value> {
        fn collect<'v>(value: &'v Value, path: &mut Vec<String>, into: &mut BTreeMap<Vec<String>, &'v Value>) {
            let Value::Object(table) = value else {
                into.insert(path.clone(), value);
                return;
            };
            for (key, value) in table {
                path.push(key.clone());
                collect(value, path, into);
                path.pop();
            }
        }
        let mut leaves = BTreeMap::new();
        collect(&self.0, &mut Vec::new(), &mut leaves);
        leaves
    }
}

/// The two plans that are compared, as values.
pub(crate) struct Both<'a> {
    /// The old plan.
    pub a: &'a Side,
    /// The new plan.
    pub b: &'a Side,
    /// The values of the old plan.
    pub old: Values,
    /// The values of the new plan.
    pub new: Values,
}

impl Both<'_> {
    /// Returns the edits that distinguish run `b` of the new plan from run `a` of the old plan.
    pub(crate) fn between(&self, a: &PlannedRun, b: &PlannedRun, differences: &[Difference]) -> Vec<Edit> {
        let of = |difference: &Difference| {
            let confirms = difference.field.starts_with("phases.measure.") && self.b.is_confirmation(b);
            let confirm = || self.of_path(&["sweeps", &*b.sweep, "search", "confirm"].map(Step::from));
            confirms.then(confirm).flatten().unwrap_or_else(|| self.of_field(a, b, difference))
        };
        let mut edits: Vec<Edit> = differences.iter().map(of).collect();
        edits.sort_by(|a, b| a.path.cmp(&b.path));
        // One edit may change several fields. For example, a different scenario has a different length
        // and a different prompt.
        edits.dedup();
        edits
    }

    fn of_field(&self, a: &PlannedRun, b: &PlannedRun, difference: &Difference) -> Edit {
        let before = origin(&self.a.loaded.plan, a, &difference.field);
        let after = origin(&self.b.loaded.plan, b, &difference.field);
        let simple = |value: Option<&Value>| value.filter(|value| !value.is_object() && !value.is_array()).map(shown);
        let (old, new) = (simple(self.old.at(&before)), simple(self.new.at(&after)));
        // A default is not written in the plan; it occurs only in the run.
        let (old, new) = match old.is_some() && new.is_some() && old != new {
            true => (old, new),
            false => (difference.old.clone(), difference.new.clone()),
        };
        let path = if after.is_empty() { difference.field.clone() } else { dotted(&after) };
        let (old_place, place) = (self.a.place(&before), self.b.place(&after));
        Edit { kind: Kind::Changed, path, old, new, old_place, place }
    }

    /// Returns the edit of the value at `path`. `value` is the new content if the value was added, otherwise
    /// the old content, if it is known.
    pub(crate) fn one_sided(&self, kind: Kind, path: &[Step], value: Option<String>) -> Edit {
        if let Some(searched) = self.searched(path) {
            return searched;
        }
        let (old, new) = if kind == Kind::Added { (None, value) } else { (value, None) };
        let (old_place, place) = match kind {
            Kind::Added => (None, self.b.place(path)),
            Kind::Removed => (self.a.place(path), None),
            Kind::Changed => (self.a.place(path), self.b.place(path)),
        };
        Edit { kind, path: dotted(path), old, new, old_place, place }
    }

    /// Returns the edit of a value that is in both plans, with its old and new content.
    pub(crate) fn changed(&self, path: &[Step], old: String, new: String) -> Edit {
        if let Some(searched) = self.searched(path) {
            return searched;
        }
        Edit { old: Some(old), new: Some(new), ..self.one_sided(Kind::Changed, path, None) }
    }

    /// If `path` leads to a load of a search, returns the edit of the search; otherwise `None`. Such loads
    /// are not written in the plan, only the range from which they follow.
    fn searched(&self, path: &[Step]) -> Option<Edit> {
        let [Step::Key(sweeps), Step::Key(sweep), Step::Key(matrix), Step::Key(axis), ..] = path else { return None };
        if (sweeps.as_str(), matrix.as_str()) != ("sweeps", "matrix") {
            return None;
        }
        self.of_path(&["sweeps", sweep, "search", axis].map(Step::from))
    }

    /// Returns the edit of a sweep's search: the edit of its range, or else of its confirmation; `None`
    /// if both plans search in the same way.
    pub(crate) fn of_search(&self, sweep: &str) -> Option<Edit> {
        let paths = ["qps", "batch_size", "confirm"].map(|key| ["sweeps", sweep, "search", key].map(Step::from));
        paths.iter().find(|path| self.old.at(*path) != self.new.at(*path)).and_then(|path| self.of_path(path))
    }

    /// Returns the edit of the value at a path; `None` if neither plan has one, or if both are equal.
    fn of_path(&self, path: &[Step]) -> Option<Edit> {
        let [old, new] = [&self.old, &self.new].map(|values| values.at(path).filter(|value| !value.is_null()));
        let kind = match (old, new) {
            (old, new) if old == new => return None,
            (None, _) => Kind::Added,
            (_, None) => Kind::Removed,
            _ => Kind::Changed,
        };
        let (old_place, place) = (self.a.place(path), self.b.place(path));
        Some(Edit { kind, path: dotted(path), old: old.map(shown), new: new.map(shown), old_place, place })
    }

    /// Whether an edit that adds or removes no known run still has an effect, either on which of the known
    /// runs are executed, or on cells whose loads have yet to be found.
    pub(crate) fn decides(&self, edit: &Edit) -> bool {
        let sides = [self.a, self.b];
        let mut keys = edit.path.split(['.', '[']);
        match (keys.next(), keys.next(), keys.next()) {
            (Some("budget"), ..) => {
                sides.iter().any(|side| side.loaded.plan.sweeps.values().any(|sweep| sweep.optional))
            }
            (Some("slo" | "goodput"), ..) => sides.iter().any(|side| side.has_choices()),
            (Some("compare"), ..) => sides.iter().any(|side| !side.expansion.series.is_empty()),
            (Some("sweeps"), Some(name), Some(field)) => {
                let waits = |side: &&Side| side.expansion.pending.iter().any(|cell| *cell.sweep == *name);
                let asks = ["search", "stop", "optimize", "gate", "skip_if", "optional"].contains(&field);
                let ends_early = |side: &&Side| side.expansion.series.iter().any(|series| *series.sweep == *name);
                asks || sides.iter().any(waits)
                    || (["repeats", "compare"].contains(&field) && sides.iter().any(ends_early))
            }
            // Values that all sweeps share may affect cells that are waiting for a load.
            (Some("endpoints" | "models" | "scenarios" | "phases" | "sweeps"), ..) => {
                sides.iter().any(|side| !side.expansion.pending.is_empty())
            }
            _ => false,
        }
    }

    /// Returns the edits that add or remove no run. These are all changed values except the values of the
    /// edits in `told`, their parents and their children.
    pub(crate) fn without_effect(&self, told: &[&Edit]) -> Vec<Edit> {
        let (old, new) = (self.old.leaves(), self.new.leaves());
        let mut paths: Vec<&Vec<String>> = old.keys().chain(new.keys()).collect();
        paths.sort();
        paths.dedup();
        let changed = paths.into_iter().filter(|path| old.get(*path) != new.get(*path));
        changed
            .filter_map(|keys| {
                let path: Vec<Step> = keys.iter().map(|key| Step::from(key.as_str())).collect();
                let name = dotted(&path);
                let is_told = told.iter().any(|edit| is_around(&edit.path, &name) || is_around(&name, &edit.path));
                let (old, new) = (old.get(keys).map(|value| shown(value)), new.get(keys).map(|value| shown(value)));
                let kind = match (&old, &new) {
                    (None, _) => Kind::Added,
                    (_, None) => Kind::Removed,
                    _ => Kind::Changed,
                };
                (!is_told).then(|| Edit { old, new, ..self.one_sided(kind, &path, None) })
            })
            .collect()
    }
}

/// Whether the value at `outer` is or contains the value at `inner`.
fn is_around(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns a value in one line.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{key}: {}", shown(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns a path in the usual notation: `sweeps.rates.matrix.qps[1]`.
fn dotted(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.push_str(&format!(".{key}")),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}
