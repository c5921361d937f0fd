//! Checks of conditions: their fields must be axes, and their values must be on these axes. The check uses
//! only the values of the axes, not the cells.

use std::collections::{HashMap, HashSet};

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::matrix::grid::{Grid, Query, Want};
use crate::plan::model::axis;
use crate::plan::model::axis::Kind;
use crate::plan::model::matrix::{Condition, Filter, Pick};
use crate::plan::model::scalar::Scalar;
use crate::plan::model::sweep::Sweep;
use crate::plan::text::tree::Step;
use crate::units::Decimal;

/// Maximum number of values that a remedy lists.
const MOST_LISTED: usize = 20;

/// The purpose of a condition, with the wording of its diagnostics.
#[derive(Debug, Clone, Copy)]
pub(super) struct Purpose {
    /// The error code.
    pub code: Code,
    /// The message for a condition that matches nothing.
    pub nothing: &'static str,
    /// The name of the condition.
    pub name: &'static str,
}

/// The `when` of a sweep or of a value.
pub(super) const WHEN: Purpose =
    Purpose { code: Code::DeadCondition, nothing: "this `when` matches nothing", name: "`when`" };
/// The `exclude` of a sweep.
pub(super) const EXCLUDE: Purpose =
    Purpose { code: Code::DeadExclude, nothing: "this exclude matches no cell", name: "exclude" };

/// The values of one axis, for lookups.
#[derive(Debug, Default)]
struct Known<'p> {
    values: HashSet<&'p Scalar>,
    /// Values in the order written.
    listed: Vec<&'p Scalar>,
    /// The numbers among the values, sorted.
    numbers: Vec<Decimal>,
}

impl Known<'_> {
    fn has(&self, pick: &Pick) -> bool {
        match pick {
            Pick::One(value) => self.values.contains(value),
            Pick::Within { from, to } => {
                let at = from.map_or(0, |from| self.numbers.partition_point(|number| *number < from));
                self.numbers.get(at).is_some_and(|number| to.is_none_or(|to| *number <= to))
            }
        }
    }
}

/// A sweep, with the properties that its checks need repeatedly.
pub(super) struct CheckedSweep<'p> {
    /// The name of the sweep.
    pub name: &'p str,
    /// The sweep, normalized.
    pub sweep: &'p Sweep,
    /// The grid of its matrix.
    pub grid: &'p Grid<'p>,
    /// Whether an axis of the sweep had an error and was removed.
    pub(crate) lacks_axes: bool,
    /// Whether the sweep's own `when` keeps no cell. If so, other conditions that match no cell are not
    /// reported.
    pub(crate) keeps_nothing: bool,
    known: HashMap<&'p str, Known<'p>>,
}

impl<'p> CheckedSweep<'p> {
    /// Collects the values of each axis of a sweep.
    pub(crate) fn new(name: &'p str, sweep: &'p Sweep, grid: &'p Grid<'p>, lacks_axes: bool) -> CheckedSweep<'p> {
        let mut known: HashMap<&str, Known> = HashMap::new();
        let points = grid.axes.axes.iter().flat_map(|(_, points)| points);
        for field in points.flat_map(|point| &point.fields) {
            let of_axis = known.entry(grid.axes.names[field.name]).or_default();
            if of_axis.values.insert(&field.value) {
                of_axis.listed.push(&field.value);
                of_axis.numbers.extend(match &field.value {
                    Scalar::Number(number) => Some(*number),
                    Scalar::Bool(_) | Scalar::Text(_) => None,
                });
            }
        }
        known.values_mut().for_each(|of_axis| of_axis.numbers.sort_unstable());
        CheckedSweep { name, sweep, grid, lacks_axes, keeps_nothing: false, known }
    }

    /// What a search for cells that match `condition` requires of each field that the condition names.
    pub(crate) fn wants<'q>(&self, condition: &'q Condition) -> Vec<(usize, Want<'q>)> {
        condition
            .iter()
            .filter_map(|(field, filter)| Some((self.grid.axes.field(field)?, Want::Matches(filter))))
            .collect()
    }
}

impl<'t> Checker<'t> {
    /// Checks a condition at path `at` within the sweep; returns whether it may match any cell.
    pub(super) fn condition(
        &mut self,
        asked: &CheckedSweep,
        at: &[Step],
        condition: &Condition,
        purpose: Purpose,
    ) -> bool {
        let at = [&steps!["sweeps", asked.name], at].concat();
        if condition.is_empty() {
            let message = format!("this {} names no field", purpose.name);
            self.empty(&at, message, "write a condition, like { endpoint: NAME }, or remove the empty table");
            return false;
        }
        let before = self.found.len();
        for (field, filter) in condition {
            self.filter(asked, &[&at[..], &steps![field.as_str()]].concat(), field, filter, purpose);
        }
        if self.found.len() > before || asked.lacks_axes || asked.keeps_nothing || !asked.grid.is_entangled(condition) {
            return self.found.len() == before;
        }
        let wants = asked.wants(condition);
        let query = Query { wants: &wants, with_excludes: false };
        let matches = asked.grid.any(query, &mut self.steps_left, &mut |_| true) != Some(false);
        if !matches {
            let message = format!("{}: no cell has this combination", purpose.nothing);
            let remedy = "check which values of these axes occur together, and their `when` conditions";
            self.report_key(&at, Diagnostic::new(purpose.code, message).remedy(remedy));
        }
        matches
    }

    fn filter(&mut self, asked: &CheckedSweep, at: &[Step], field: &str, filter: &Filter, purpose: Purpose) {
        let Some(known) = asked.known.get(field) else { return self.no_field(asked, at, field, purpose) };
        if filter.0.is_empty() {
            self.empty(at, format!("`{field}` lists no values"), "write at least one");
        }
        let matrix = steps!["sweeps", asked.name, "matrix"];
        if self.tree.walk(&matrix).node.is_damaged() {
            return;
        }
        let slips = self.names_with_slips(field, known.listed.iter().copied()).unwrap_or_default();
        let right: HashSet<&str> = slips.into_iter().collect();
        // If the axis contains an unknown name, that error is reported at the axis. A declared name in the
        // condition may be the one that was meant there.
        let is_right = |pick: &Pick| matches!(pick, Pick::One(Scalar::Text(name)) if right.contains(name.as_str()));
        for (place, pick) in filter.0.iter().enumerate().filter(|(_, pick)| !known.has(pick) && !is_right(pick)) {
            let message = format!("{}: `{pick}` is not on axis `{field}`", purpose.nothing);
            let message = match pick {
                Pick::One(_) => message,
                Pick::Within { .. } => {
                    format!("{}: no value of axis `{field}` is in the range `{pick}`", purpose.nothing)
                }
            };
            let at = [at, &steps![place]].concat();
            let remedy = self.on_axis(known, pick);
            self.report(&at, Diagnostic::new(purpose.code, message).remedy(remedy));
        }
    }

    /// The allowed names of an axis, if one of `values` is not among them; otherwise `None`.
    pub(super) fn names_with_slips<'v>(
        &mut self,
        axis: &str,
        values: impl IntoIterator<Item = &'v Scalar>,
    ) -> Option<Vec<&'t str>> {
        let Some(Kind::Name(table)) = axis::kind(axis) else { return None };
        let known = self.known_names(table);
        let is_slip = |value: &Scalar| !matches!(value, Scalar::Text(name) if known.contains(name.as_str()));
        values.into_iter().any(is_slip).then(|| self.names(table))
    }

    /// The remedy for a value that is not on an axis.
    fn on_axis(&self, known: &Known, pick: &Pick) -> String {
        if let Some(bounds) = meant_bounds(known, pick) {
            return format!("write {bounds}");
        }
        let shown: Vec<String> = known.listed.iter().take(MOST_LISTED).map(ToString::to_string).collect();
        let names = shown.iter().map(String::as_str);
        if matches!(pick, Pick::One(_)) && shown.contains(&pick.to_string()) {
            return "write the value exactly as on the axis: numbers without quotes, names with quotes".to_owned();
        }
        let is_text = matches!(pick, Pick::One(Scalar::Text(_)));
        match suggest::nearest(&pick.to_string(), names.clone()).filter(|_| is_text) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.listed.len() > shown.len() => {
                let more = known.listed.len() - shown.len();
                format!("the axis has {} and {more} more", suggest::choices(names).replace(" or ", ", "))
            }
            None => format!("the axis has {}", suggest::choices(names).replace(" or ", " and ")),
        }
    }

    fn no_field(&mut self, asked: &CheckedSweep, at: &[Step], field: &str, purpose: Purpose) {
        let name = asked.name;
        let axes = asked.grid.axes.names.iter().copied();
        let of_group: Vec<&str> =
            asked.sweep.matrix.get(field).map(|axis| super::names::fields(field, axis)).unwrap_or_default();
        let (message, remedy) = if of_group.is_empty() {
            let remedy = match suggest::nearest(field, axes.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its axes are {}", suggest::choices(axes).replace(" or ", " and ")),
            };
            (format!("`{field}` is not an axis of sweep `{name}`"), remedy)
        } else {
            let remedy = format!("name {}", suggest::choices(of_group));
            (format!("`{field}` is a group of axes, but a condition must name a single axis"), remedy)
        };
        // An axis with an error has already been reported, and a condition on it may be correct.
        if !asked.lacks_axes && !self.is_given(&steps!["sweeps", name, "matrix"], field)
            || asked.sweep.matrix.contains_key(field)
        {
            self.report_key(at, Diagnostic::new(purpose.code, message).remedy(remedy));
        }
    }
}

/// Returns the bounds, in the syntax of plans, for a text such as `>8` or `<= 64` in a condition on an axis of
/// numbers. `None` if the text does not have this form, or if no number of the axis lies within the bounds.
fn meant_bounds(known: &Known, pick: &Pick) -> Option<String> {
    let Pick::One(Scalar::Text(text)) = pick else { return None };
    let text = text.trim();
    let end = text.find(|c: char| !matches!(c, '<' | '>' | '='))?;
    let number: Decimal = text[end..].trim().parse().ok()?;
    let is_below = |at: &&Decimal| match &text[..end] {
        ">" | "<=" => **at <= number,
        _ => **at < number,
    };
    let (below, above): (Vec<&Decimal>, Vec<&Decimal>) = known.numbers.iter().partition(is_below);
    match &text[..end] {
        ">" | ">=" => Some(format!("{{ from: {} }}", above.first()?)),
        "<" | "<=" => Some(format!("{{ to: {} }}", below.last()?)),
        _ => None,
    }
}
