//! `exclude`: fields that are axes, values that are on them, and something left over. Decided from the values of the axes
//! alone; cells are never built.

use super::{Checker, steps};
use crate::plan::error::{Code, Diagnostic};
use crate::plan::model::{Scalar, Sweep, Table};
use crate::plan::shorthand::OneOrMany;
use crate::plan::suggest;

/// Excludes looked at after which the search for a cell that is left over gives up and believes that there is one; no
/// plan written by hand comes near.
const MOST_STEPS: usize = 1_000_000;

/// Whether an exclude leaves out every cell with these values, whatever the other axes say.
pub(super) fn leaves_out(sweep: &Sweep, values: &[(&str, &Scalar)]) -> bool {
    let matches = |(field, wanted): (&String, &OneOrMany<Scalar>)| {
        values.iter().any(|(axis, value)| axis == field && wanted.0.contains(value))
    };
    sweep.exclude.iter().any(|exclude| !exclude.is_empty() && exclude.iter().all(matches))
}

impl Checker<'_> {
    /// Checks the excludes of a sweep, whose matrix has its one form.
    pub(super) fn excludes(&mut self, name: &str, sweep: &Sweep) {
        for (index, exclude) in sweep.exclude.iter().enumerate() {
            if exclude.is_empty() {
                let at = steps!["sweeps", name, "exclude", index];
                self.empty(&at, "this exclude names no field", "write one: { endpoint: NAME }, or remove it");
            }
            for (field, values) in exclude {
                self.field(name, index, field, values, sweep);
            }
        }
    }

    /// Reports excludes that leave no cell over; only of a sweep that has no other mistake, which may be the cause.
    pub(super) fn all_excluded(&mut self, name: &str, sweep: &Sweep) {
        let damaged = self.tree.walk(&steps!["sweeps", name]).node.is_damaged();
        let excludes: Vec<&Table<_>> = sweep.exclude.iter().filter(|exclude| !exclude.is_empty()).collect();
        let has_cells = sweep.matrix.values().all(|values| !values.is_empty());
        if !damaged && has_cells && !excludes.is_empty() && nothing_left(sweep, &excludes) {
            let message = format!("`exclude` leaves no cell of sweep `{name}` over");
            let remedy = "remove an exclude, or add the fields that tell which cells are meant";
            self.report_key(
                &steps!["sweeps", name, "exclude"],
                Diagnostic::new(Code::AllExcluded, message).remedy(remedy),
            );
        }
    }

    fn field(&mut self, name: &str, index: usize, field: &str, values: &OneOrMany<Scalar>, sweep: &Sweep) {
        let at = steps!["sweeps", name, "exclude", index, field];
        let Some(axis) = sweep.matrix.get(field) else {
            let axes = sweep.matrix.keys().map(String::as_str);
            let message = format!("`{field}` is not an axis of sweep `{name}`");
            let diagnostic =
                Diagnostic::new(Code::DeadExclude, message).remedy(match suggest::nearest(field, axes.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its axes are {}", suggest::choices(axes).replace(" or ", " and ")),
                });
            // An axis that is wrong itself was reported; the exclude may well be right.
            if !self.is_given(&steps!["sweeps", name, "matrix"], field) {
                self.report_key(&at, diagnostic);
            }
            return;
        };
        if self.tree.walk(&steps!["sweeps", name, "matrix", field]).node.is_damaged() {
            return;
        }
        for (place, value) in values.0.iter().enumerate().filter(|(_, value)| !axis.0.contains(value)) {
            let shown: Vec<String> = axis.0.iter().map(Scalar::to_string).collect();
            let names = shown.iter().map(String::as_str);
            let remedy = if shown.contains(&value.to_string()) {
                "write it as on the axis: a number without quotes, a name with them".to_owned()
            } else {
                match suggest::nearest(&value.to_string(), names.clone()).filter(|_| matches!(value, Scalar::Text(_))) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the axis has {}", suggest::choices(names).replace(" or ", " and ")),
                }
            };
            let message = format!("this exclude leaves nothing out: `{value}` is not on axis `{field}`");
            let at = [&at[..], &steps![place]].concat();
            self.report(&at, Diagnostic::new(Code::DeadExclude, message).remedy(remedy));
        }
    }
}

/// Whether every cell is left out. Values are chosen axis by axis, for the axes that excludes name; a choice that
/// completes an exclude is taken back.
fn nothing_left(sweep: &Sweep, excludes: &[&Table<OneOrMany<Scalar>>]) -> bool {
    let axes: Vec<_> =
        sweep.matrix.iter().filter(|(axis, _)| excludes.iter().any(|exclude| exclude.contains_key(*axis))).collect();
    let mut steps = 0;
    !survives(&axes, &mut Vec::new(), excludes, &mut steps)
}

fn survives<'a>(
    axes: &[(&'a String, &'a OneOrMany<Scalar>)],
    chosen: &mut Vec<(&'a str, &'a Scalar)>,
    excludes: &[&Table<OneOrMany<Scalar>>],
    steps: &mut usize,
) -> bool {
    let Some(((axis, values), rest)) = axes.split_first() else { return true };
    *steps > MOST_STEPS
        || values.0.iter().any(|value| {
            *steps += excludes.len();
            chosen.push((axis, value));
            let left_out = excludes.iter().any(|exclude| {
                exclude
                    .iter()
                    .all(|(field, wanted)| chosen.iter().any(|(axis, value)| axis == field && wanted.0.contains(value)))
            });
            let survives = !left_out && survives(rest, chosen, excludes, steps);
            chosen.pop();
            survives
        })
}
