//! Rules about comparisons that cannot show what they are meant to show.

use super::super::finding::Finding;
use super::super::view::{SweepView, View};
use super::sides::{self, Sides};
use super::{differ, listed};
use crate::analysis::comparison;
use crate::plan::model::content::Resolved;
use crate::plan::{Compare, Endpoint, Plan, Scalar};

/// Minimum number of repeats for a comparison.
const REPEATS: u32 = 3;
/// Maximum number of repeats that is recommended.
const MOST_REPEATS: u32 = 50;
/// Maximum number of values that are compared with the baseline. A longer axis is almost certainly a range of
/// numbers, whose values all differ from the baseline in the same way, so the first ones suffice.
const MOST: usize = 100;

/// M007: a comparison is declared, but cells have fewer than 3 runs.
pub(crate) fn no_repeats(_: &View, sweep: &SweepView) -> Option<Finding> {
    let compare = sweep.compare.filter(|_| sweep.sweep.repeats.at_most < REPEATS)?;
    let times = if sweep.sweep.repeats.at_most == 1 { "once" } else { "twice" };
    Some(sweep.finding(
        [&sweep.path()[..], &[crate::plan::Step::from("repeats")]].concat(),
        format!("cells are compared by {}, but each is run only {times}", compare.by),
        format!("write `repeats: {REPEATS}` in the sweep, or preferably 5"),
    ))
}

/// Difference between rounds of equal arms, as a share, that a margin must tolerate. A margin that
/// tolerates less is too narrow.
const QUIET: f64 = 0.01;

/// M025: with the number of repeats in the plan, the margin can be confirmed only if rounds hardly
/// differ.
pub(crate) fn narrow_margin(_: &View, sweep: &SweepView) -> Option<Finding> {
    let compare = sweep.compare?;
    let margin = compare.margin?.to_f64();
    let repeats = sweep.sweep.repeats.at_most;
    let tolerated_by = |repeats: u32| comparison::tolerated(margin, repeats, compare.sequential);
    let tolerated = tolerated_by(repeats).filter(|tolerated| *tolerated < QUIET)?;
    let enough = |repeats: &u32| tolerated_by(*repeats).is_some_and(|tolerated| tolerated >= QUIET);
    let own = sweep.sweep.compare.is_some();
    let mut at = if own { sweep.path() } else { Vec::new() };
    at.extend(super::super::view::steps!["compare", "margin"]);
    let (allowed, differ) = (comparison::allowed(margin), comparison::percent(tolerated));
    Some(sweep.finding(
        at,
        format!("{repeats} repeats can confirm a margin of {allowed} only if rounds differ by less than {differ}"),
        match (repeats..=MOST_REPEATS).find(enough) {
            Some(enough) => format!("write `repeats: {enough}` in the sweep, or widen the margin"),
            None => "write a wider margin".to_owned(),
        },
    ))
}

/// M008: the compared values differ in more than the compared axis.
pub(crate) fn several_variables(view: &View, sweep: &SweepView) -> Option<Finding> {
    let compare = sweep.compare?;
    let (other, variables) = differing(view.plan, sweep, compare)?;
    Some(sweep.finding(
        sweep.path().into_iter().chain(super::super::view::steps!["matrix", compare.by.as_str()]).collect(),
        format!("`{other}` differs from the baseline `{}` in {}", compare.baseline, listed(&variables)),
        "change one variable at a time: add a value for each step between the two, and compare adjacent values",
    ))
}

/// Returns the first value that differs from the baseline in several variables, and these variables.
fn differing(plan: &Plan, sweep: &SweepView, compare: &Compare) -> Option<(Scalar, Vec<String>)> {
    let others = sweep.values(&compare.by).into_iter().filter(|value| *value != compare.baseline);
    others.take(MOST).find_map(|value| {
        let mut variables = of_values(sweep, compare, &value)?;
        let own = variables.len();
        let sides = Sides { by: &compare.by, values: [&compare.baseline, &value] };
        variables.extend(sides::differing(plan, sweep, sides));
        // One of the differences between the values themselves may be the compared variable, but a
        // difference that the matrix adds never is.
        (own > 1 || variables.len() > own).then_some((value, variables))
    })
}

/// Returns the variables in which a value of the axis and the baseline themselves differ.
fn of_values(sweep: &SweepView, compare: &Compare, value: &Scalar) -> Option<Vec<String>> {
    let (baseline, other) = (compare.baseline.to_string(), value.to_string());
    Some(match compare.by.as_str() {
        "endpoint" => {
            let (a, b): (&Endpoint, &Endpoint) =
                (named(&sweep.endpoints, &baseline)?, named(&sweep.endpoints, &other)?);
            let mut variables = differ::endpoints(a, b);
            variables.extend(differ::ids(&sweep.models, a.engine, b.engine));
            variables
        }
        "model" => differ::models(named(&sweep.models, &baseline)?, named(&sweep.models, &other)?),
        "scenario" => differ::scenarios(scenario(sweep, &baseline)?, scenario(sweep, &other)?),
        by => vec![by.to_owned()],
    })
}

fn named<'p, T>(entries: &[(&'p str, &'p T)], name: &str) -> Option<&'p T> {
    entries.iter().find(|(known, _)| *known == name).map(|(_, entry)| *entry)
}

fn scenario<'v>(sweep: &'v SweepView, name: &str) -> Option<&'v Resolved> {
    sweep.scenarios.iter().find(|(known, _)| known == name).map(|(_, scenario)| scenario)
}
