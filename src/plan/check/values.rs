//! Checks of axis values: they must have the right type and occur only once, lists of a zip must have
//! equal lengths, and a plan must not have too many values.

use std::collections::HashSet;

use super::checker::{Checker, steps};
use crate::plan::check::checker::MOST_VALUES;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::matrix::axes::Axes;
use crate::plan::model::axis;
use crate::plan::model::axis::Kind;
use crate::plan::model::matrix::{Axis, Item, What, Zip};
use crate::plan::model::scalar::Scalar;
use crate::plan::model::sweep::Sweep;
use crate::plan::model::table::Table;
use crate::plan::text::tree::Step;
use crate::units::text::counted;

impl Checker<'_> {
    /// Checks the values of every axis of a sweep. Axes that cannot be expanded are removed.
    pub(super) fn values(&mut self, name: &str, sweep: &mut Sweep) {
        let matrix = steps!["sweeps", name, "matrix"];
        if self.tree.walk(&matrix).node.keys().next().is_none() {
            let remedy = "add axes, like matrix: { endpoint: [...], model: [...], batch_size: [1, 8] }";
            self.empty(&matrix, format!("sweep `{name}` has an empty matrix"), remedy);
        }
        for (key, axis) in std::mem::take(&mut sweep.matrix) {
            let at = [&matrix[..], &steps![key.as_str()]].concat();
            let zipped = self.tree.walk(&[&at[..], &steps!["zip"]].concat());
            let names_none = matches!(&axis, Axis::Zip(zip) if zip.lists.is_empty());
            // If a zip contains only lists that are not axes, these have already been reported.
            if axis.is_empty() && !(names_none && zipped.node.keys().next().is_some()) {
                let remedy = "write at least one value, or remove the axis";
                self.empty(&at, format!("axis `{key}` has no values"), remedy);
            }
            let fits = match &axis {
                Axis::Values(items) => {
                    self.items(&at, &key, items);
                    true
                }
                Axis::Zip(zip) => self.zip(&at, &key, zip),
            };
            if fits && self.has_room(&at, &key, &axis) {
                sweep.matrix.insert(key, axis);
            }
        }
        for (index, extend) in sweep.extend.iter().enumerate() {
            self.cell_values(&steps!["sweeps", name, "extend", index, "with"], &extend.with);
        }
        for (index, cell) in sweep.add.iter().enumerate() {
            self.cell_values(&steps!["sweeps", name, "add", index], cell);
        }
        self.twice(name, sweep);
    }

    fn items(&mut self, at: &[Step], axis: &str, items: &[Item]) {
        for (index, item) in items.iter().enumerate() {
            let at = [at, &steps![index]].concat();
            match &item.what {
                What::Fields(fields) => self.cell_values(&at, fields),
                What::Values(values) if values.is_empty() => {
                    self.empty(&[&at[..], &steps!["value"]].concat(), "`value` has no values", "write at least one");
                }
                What::Values(values) => {
                    for (inside, value) in values.iter().enumerate() {
                        let at = [&at[..], &steps!["value", inside]].concat();
                        self.value(&at, axis, value);
                    }
                }
                What::Range(range) => self.range(&at, axis, *range),
                What::Taken(take) => self.taken_value(&at, axis, take),
            }
        }
    }

    fn range(&mut self, at: &[Step], axis: &str, range: crate::plan::model::matrix::range::Range) {
        let Some(kind) = axis::kind(axis) else { return };
        let Some(value) = range.values().map(Scalar::Number).find(|value| !kind.takes(value)) else { return };
        let (message, remedy) = if kind.is_number() {
            let remedy = format!("choose bounds and steps that give {}, or list the values", kind.wanted());
            (format!("a value of axis `{axis}` must be {}, but this range gives `{value}`", kind.wanted()), remedy)
        } else {
            let message = format!("a value of axis `{axis}` must be {}, not a range", kind.wanted());
            (message, "list the values".to_owned())
        };
        self.report(at, Diagnostic::new(Code::AxisValue, message).remedy(remedy));
    }

    /// Checks the lists of a zip. Returns whether they contain only plain values and have equal lengths.
    fn zip(&mut self, at: &[Step], key: &str, zip: &Zip) -> bool {
        let at = [at, &steps!["zip"]].concat();
        let mut is_plain = true;
        for (field, list) in &zip.lists {
            let at = [&at[..], &steps![field.as_str()]].concat();
            self.items(&at, field, &list.0);
            let odd = |item: &Item| item.when.is_some() || matches!(item.what, What::Fields(_) | What::Taken(_));
            for (index, _) in list.0.iter().enumerate().filter(|(_, item)| odd(item)) {
                let message = format!(
                    "the lists of a zip contain plain values, but `{field}` contains a table with further keys"
                );
                let remedy = "put the `when` next to `zip`, or write the axis as a list of tables, each with its own \
                              `when`";
                let at = [&at[..], &steps![index]].concat();
                self.report(&at, Diagnostic::new(Code::AxisValue, message).remedy(remedy));
                is_plain = false;
            }
        }
        is_plain && self.equally_long(&at, key, zip)
    }

    fn equally_long(&mut self, at: &[Step], key: &str, zip: &Zip) -> bool {
        let lengths: Vec<(&String, usize)> =
            zip.lists.iter().map(|(field, list)| (field, list.0.iter().map(Item::len).sum())).collect();
        let Some(other) = lengths.iter().find(|(_, length)| *length != lengths[0].1) else { return true };
        let values = |count: usize| counted(count, "value");
        let all: Vec<String> =
            lengths.iter().map(|(field, count)| format!("`{field}` has {}", values(*count))).collect();
        let message = format!("the lists of `{key}` differ in length: {}", all.join(", "));
        let mut diagnostic = Diagnostic::new(Code::UnequalZip, message)
            .remedy("give each list the same number of values: values at the same position belong together");
        let first = [at, &steps![lengths[0].0.as_str()]].concat();
        diagnostic.related.extend(self.key_of(&first, &values(lengths[0].1)));
        diagnostic.label = Some(values(other.1));
        if !self.tree.walk(at).node.is_damaged() {
            self.report_key(&[at, &steps![other.0.as_str()]].concat(), diagnostic);
        }
        false
    }

    /// Whether the plan may have the values of this axis in addition to those of the previous axes; reports an
    /// error if not.
    fn has_room(&mut self, at: &[Step], key: &str, axis: &Axis) -> bool {
        match self.values_left.checked_sub(axis.weight()) {
            Some(left) => {
                self.values_left = left;
                true
            }
            None => {
                let message = format!(
                    "with the {} values of axis `{key}`, the axes of this plan have more than {MOST_VALUES} values in \
                     total",
                    axis.weight()
                );
                self.report_key(
                    at,
                    Diagnostic::new(Code::TooLarge, message).remedy("write larger steps, or fewer axes"),
                );
                false
            }
        }
    }

    fn cell_values(&mut self, at: &[Step], cell: &Table<Scalar>) {
        self.not_empty(at, cell.is_empty());
        for (axis, value) in cell {
            self.value(&[at, &steps![axis.as_str()]].concat(), axis, value);
        }
    }

    fn not_empty(&mut self, at: &[Step], is_empty: bool) {
        // A table that names no axis has already been reported.
        if is_empty && self.tree.walk(at).node.keys().next().is_none() {
            self.empty(at, "this table names no axis", "name an axis, like { endpoint: NAME }, or remove the table");
        }
    }

    fn value(&mut self, at: &[Step], axis: &str, value: &Scalar) {
        let Some(kind) = axis::kind(axis) else { return };
        if !kind.takes(value) {
            let message = format!("a value of axis `{axis}` must be {}, not `{value}`", kind.wanted());
            return self.report(at, Diagnostic::new(Code::AxisValue, message).remedy(kind.remedy(value)));
        }
        if let (Kind::Name(table), Scalar::Text(value)) = (kind, value) {
            let known = self.known_names(table);
            if !known.contains(value.as_str()) {
                let known = self.names(table);
                self.unknown_name(at, axis, value, &known);
            }
        }
    }

    /// Reports duplicate values on an axis.
    fn twice(&mut self, name: &str, sweep: &Sweep) {
        let Ok(axes) = Axes::new(sweep) else { return };
        for (axis, (key, points)) in axes.axes.iter().enumerate() {
            let mut seen = HashSet::new();
            for point in points {
                let values: Vec<(usize, &Scalar)> =
                    point.fields.iter().map(|field| (field.name, &field.value)).collect();
                let Some(first) = point.fields.first().filter(|_| !seen.insert(values)) else { continue };
                let shown = match (&point.fields[..], sweep.matrix.get(*key)) {
                    ([one], Some(Axis::Values(_))) if axes.names[one.name] == *key => one.value.to_string(),
                    (fields, _) => {
                        let all: Vec<String> =
                            fields.iter().map(|field| format!("{}: {}", axes.names[field.name], field.value)).collect();
                        format!("{{ {} }}", all.join(", "))
                    }
                };
                let message = format!("`{shown}` appears twice on axis `{key}`");
                let remedy = match point.when {
                    Some(_) => "keep one, with a `when` that lists all its cells: { endpoint: [a, b] }",
                    None => "remove one; to run a cell several times, use `repeats`",
                };
                let at = [&steps!["sweeps", name][..], &axes.place(axis, first, &sweep.matrix[*key])].concat();
                self.report(&at, Diagnostic::new(Code::DuplicateValue, message).remedy(remedy));
            }
        }
    }
}
