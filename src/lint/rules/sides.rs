//! Differences, other than in the compared axis, between the cells on two sides of a comparison. Values
//! of a zip, of `when` or of `extend` may cause them. The search visits only axes that can cause such a
//! difference. The number of its steps is limited; if the limit is exceeded, nothing is reported.

use std::collections::{BTreeMap, HashSet};

use indexmap::{IndexMap, IndexSet};

use super::super::view::SweepView;
use crate::plan::LengthField;
use crate::plan::matrix::grid::{Chosen, Grid, Query, Rule, Want};
use crate::plan::model::content::{Resolved, resolve};
use crate::plan::{Extend, FieldValue, Plan, Scalar};
use crate::units::Decimal;

/// Limit of search steps on each side. It is far above the needs of any plan written by hand, and this
/// many steps take only a moment.
const STEPS: u64 = 200_000;
/// Maximum number of distinct cells kept for each side.
const MOST: usize = 2_000;
/// Maximum number of cells without a counterpart that are inspected. A few are enough, because all of
/// them differ in the same few fields.
const FEW: usize = 16;

/// The fields of a cell that may depend on the compared axis, excluding the axis itself.
type Rest<'p> = BTreeMap<&'p str, Scalar>;

/// Two values of one axis, the baseline first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    /// Name of the compared axis.
    pub by: &'a str,
    /// The two values that are compared, the baseline first.
    pub values: [&'a Scalar; 2],
}

/// For cells that have no counterpart on the other side: returns the fields in which they differ from
/// the nearest cell on that side, each with the differing values.
pub(crate) fn differing(plan: &Plan, sweep: &SweepView, sides: Sides) -> Vec<String> {
    let Some(search) = Search::new(plan, sweep, sides.by) else { return Vec::new() };
    let [Some(left), Some(right)] = sides.values.map(|side| search.cells(side)) else { return Vec::new() };
    let mut fields: IndexMap<&str, String> = IndexMap::new();
    for (mine, theirs, [here, there]) in
        [(&left, &right, sides.values), (&right, &left, [sides.values[1], sides.values[0]])]
    {
        for cell in mine.difference(theirs).take(FEW) {
            // Among equally near cells, a cell that itself has no counterpart is preferred.
            let Some(near) = theirs.iter().min_by_key(|other| (apart(cell, other).len(), mine.contains(*other))) else {
                continue;
            };
            for field in apart(cell, near) {
                let is_alone = mine.contains(near);
                let shown = || match (cell.get(field), near.get(field)) {
                    (Some(own), Some(other)) if !is_alone => format!("{field} ({own} and {other})"),
                    (Some(own), _) => format!("{field} ({own} occurs only with `{here}`)"),
                    (None, other) => {
                        let other = other.map(Scalar::to_string).unwrap_or_default();
                        format!("{field} ({other} occurs only with `{there}`)")
                    }
                };
                fields.entry(field).or_insert_with(shown);
            }
        }
    }
    fields.into_values().collect()
}

/// The fields in which two cells differ.
fn apart<'p>(a: &Rest<'p>, b: &Rest<'p>) -> Vec<&'p str> {
    let only = |these: &Rest<'p>, those: &Rest<'p>| -> Vec<&'p str> {
        these.keys().filter(|field| !those.contains_key(*field)).copied().collect()
    };
    let other = a.iter().filter(|(field, value)| b.get(*field).is_some_and(|other| other != *value));
    other.map(|(field, _)| *field).chain(only(a, b)).chain(only(b, a)).collect()
}

/// The cells of a sweep, restricted to the fields that may depend on an axis.
struct Search<'p> {
    grid: Grid<'p>,
    extends: Vec<(Rule<'p>, &'p Extend)>,
    /// The compared axis, as the number of its field in `grid`.
    by: usize,
    /// Numbers of the other fields that may depend on the compared axis.
    deciding: Vec<usize>,
    /// The values of a cell in fields that no axis sets.
    usual: Rest<'p>,
}

impl<'p> Search<'p> {
    fn new(plan: &Plan, sweep: &SweepView<'p>, by: &str) -> Option<Search<'p>> {
        let grid = Grid::new(sweep.sweep).ok()?;
        let by = grid.axes.field(by)?;
        let extends: Vec<(Rule, &Extend)> =
            sweep.sweep.extend.iter().map(|extend| (Rule::new(&grid.axes, &extend.when), extend)).collect();
        let deciding = deciding(sweep, &grid, by);
        let of_axes = deciding.iter().map(|field| grid.axes.names[*field]);
        let of_extends = extends.iter().flat_map(|(_, extend)| extend.with.keys()).map(String::as_str);
        let usual = of_axes.chain(of_extends).filter_map(|field| Some((field, usual(plan, sweep, field)?))).collect();
        Some(Search { grid, extends, by, deciding, usual })
    }

    /// The distinct cells with this value on the axis; `None` if there are too many to keep.
    fn cells(&self, side: &Scalar) -> Option<IndexSet<Rest<'p>>> {
        let any = self.deciding.iter().map(|field| (*field, Want::Any));
        let wants: Vec<(usize, Want)> = [(self.by, Want::Is(side))].into_iter().chain(any).collect();
        let mut cells = IndexSet::new();
        let mut hold = |chosen: &Chosen| {
            cells.insert(self.rest(chosen));
            cells.len() > MOST
        };
        let query = Query { wants: &wants, with_excludes: false };
        (self.grid.any(query, &mut STEPS.clone(), &mut hold) == Some(false)).then_some(cells)
    }

    fn rest(&self, chosen: &Chosen) -> Rest<'p> {
        let mut rest = self.usual.clone();
        let given = |field: &usize| Some((self.grid.axes.names[*field], chosen.fields[*field]?.value.clone()));
        rest.extend(self.deciding.iter().filter_map(given));
        for (_, extend) in self.extends.iter().filter(|(rule, _)| rule.matches(chosen)) {
            rest.extend(extend.with.iter().map(|(field, value)| (field.as_str(), value.clone())));
        }
        rest
    }
}

/// The fields other than `by` that may depend on `by`: the fields of its own axis, the fields of axes with
/// conditional values, and the fields that conditions name.
fn deciding(sweep: &SweepView, grid: &Grid, by: usize) -> Vec<usize> {
    let axes = &grid.axes;
    let of_points = axes.axes.iter().flat_map(|(_, points)| points).filter_map(|point| point.when);
    let of_sweep = sweep.sweep.when.iter().chain(sweep.sweep.extend.iter().map(|extend| &extend.when));
    let named: HashSet<&str> = of_points.chain(of_sweep).flat_map(|when| when.keys()).map(String::as_str).collect();
    let conditional: Vec<bool> =
        axes.axes.iter().map(|(_, points)| points.iter().any(|point| point.when.is_some())).collect();
    let decides = |field: &usize| {
        let axis = axes.given_by[*field];
        *field != by && (axis == axes.given_by[by] || conditional[axis] || named.contains(axes.names[*field]))
    };
    (0..axes.names.len()).filter(decides).collect()
}

/// The value of a field that no axis sets, if it is the same for the whole sweep.
fn usual(plan: &Plan, sweep: &SweepView, field: &str) -> Option<Scalar> {
    let text = |name: &str| Some(Scalar::Text(name.to_owned()));
    match field {
        "connections" => return text(sweep.sweep.connections.unwrap_or(plan.connections).name()),
        "arrivals" => return text(&sweep.sweep.spacing().label()),
        _ => {}
    }
    let without = sweep.scenarios.is_empty().then(|| resolve("B1", &plan.scenarios)).flatten();
    let streams = sweep.sweep.stream.unwrap_or(plan.stream);
    let said = |one: &Resolved| match field {
        "nonce" => text(one.nonce.unwrap_or(plan.nonce).name()),
        _ => sent(one, field, streams),
    };
    let mut values = sweep.scenarios.iter().map(|(_, one)| one).chain(&without).map(said);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)?
}

/// The value of a request field in a scenario.
fn sent(scenario: &Resolved, field: &str, streams: bool) -> Option<Scalar> {
    let tokens = |count: u32| Some(Scalar::Number(Decimal::from(count)));
    match field {
        "prompt_tokens" => tokens(scenario.content.prompt_tokens),
        asked if LengthField::KEYS.contains(&asked) => tokens(scenario.content.output_tokens),
        "system_tokens" => tokens(scenario.content.system_tokens),
        "turns" => tokens(scenario.content.turns),
        "think" => scenario.content.talk.think?.constant().map(|time| Scalar::Text(time.to_string())),
        "history" => Some(Scalar::Text(scenario.content.talk.history.name().to_owned())),
        "sessions" => Some(Scalar::Text(scenario.content.talk.sessions.name().to_owned())),
        "context_limit" => scenario.content.talk.context_limit.and_then(tokens),
        "cache" => Some(Scalar::Text(scenario.content.cache.name().to_owned())),
        "context_cut" => Some(Scalar::Text(scenario.content.talk.context_cut.name().to_owned())),
        "stream" => Some(Scalar::Bool(scenario.stream.unwrap_or(streams))),
        "ignore_eos" => Some(Scalar::Bool(scenario.ignore_eos.unwrap_or(true))),
        other => match scenario.fields.get(other)? {
            FieldValue::Decimal(value) => Some(Scalar::Number(value)),
            FieldValue::Text(text) | FieldValue::Json(text) => Some(Scalar::Text(text)),
        },
    }
}
