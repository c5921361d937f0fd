//! Rules about searches, and about sweeps whose loads are taken from the results of searches.

use super::super::expect::Expect;
use super::super::finding::Finding;
use super::super::view::{SweepView, View, steps};
use super::count;
use crate::expand::Load;
use crate::expand::resolve::phases;
use crate::plan::model::phases::Measure;
use crate::plan::model::search::{CONFIRM, Search};
use crate::units::{Decimal, Nanos};

/// Minimum number of requests per run, at the correct load, with which the simulated searches of
/// docs/SEARCH.md were accurate to `RESOLUTION`.
const REQUESTS: f64 = 4_000.0;
/// The resolution of the simulated searches of docs/SEARCH.md.
const RESOLUTION: f64 = 0.05;

/// The search of a sweep and the window of its ordinary runs; `None` if the sweep is not a search.
fn searched<'p>(view: &View, sweep: &SweepView<'p>) -> Option<(&'p Search, Measure)> {
    let any = Load::Closed { batch_size: 1 };
    let measure = phases(&view.plan.phases, &sweep.sweep.phases, &any).ok()?.measure;
    Some((sweep.sweep.search.as_ref()?, measure))
}

/// M027: the run that confirms a result is no longer than the runs that found it.
pub(crate) fn short_confirm(view: &View, sweep: &SweepView) -> Option<Finding> {
    let (search, measure) = searched(view, sweep)?;
    let confirm = search.confirm.unwrap_or(CONFIRM);
    let window = measure.duration;
    if confirm == Nanos::ZERO || confirm > window {
        return None;
    }
    let message =
        format!("`confirm: {confirm}` is not longer than the other runs of the search ({window}), so it adds nothing");
    let longer = Nanos(window.0.saturating_mul(5));
    let remedy =
        format!("write `confirm: {longer}` (five times the window), or `confirm: 0s` to disable the confirmation");
    let at = match search.confirm {
        Some(_) => steps!["sweeps", sweep.name, "search", "confirm"],
        None => steps!["sweeps", sweep.name, "search"],
    };
    Some(sweep.finding(at, message, remedy))
}

/// M028: even at the heaviest load of the range, a window has fewer requests than the resolution requires.
pub(crate) fn fine_resolution(view: &View, sweep: &SweepView) -> Option<Finding> {
    let (search, measure) = searched(view, sweep)?;
    let (axis, range) = search.axis()?;
    let expect = Expect::of(sweep);
    let rate = match axis {
        "qps" => range.to.to_f64() * expect.per_arrival(),
        _ => expect.closed_rate(range.to.to_f64()),
    };
    let longest = measure.at_most.unwrap_or(measure.duration).secs() * rate;
    let prolonged = measure.min_requests.map_or(0.0, |least| (least as f64).min(longest));
    let requests = (measure.duration.secs() * rate).max(prolonged);
    let within = range.within.to_f64();
    let takes = REQUESTS * (RESOLUTION / within).powi(2);
    if within <= 0.0 || requests >= takes {
        return None;
    }
    let (_, assumption) = expect.request();
    let assumption = if axis == "qps" { String::new() } else { assumption };
    let message = format!(
        "a window has {} requests at the heaviest load{assumption}, but distinguishing loads that differ by {} takes \
         about {} requests",
        count(requests),
        range.within,
        count(takes),
    );
    // Rounded up to whole percent, as written in plans.
    let coarser = (100.0 * RESOLUTION * (REQUESTS / requests.max(1.0)).sqrt()).ceil();
    let longer = super::time_for(takes, rate);
    let remedy = match coarser <= 50.0 {
        true => format!("write `within: {coarser}%`, or `phases: {{ measure: {longer} }}`"),
        false => format!("write `phases: {{ measure: {longer} }}`"),
    };
    Some(sweep.finding(steps!["sweeps", sweep.name, "search", axis], message, remedy))
}

/// M029: a sweep runs at or above the load that an earlier sweep found.
pub(crate) fn no_headroom(view: &View) -> Vec<Finding> {
    let of = |sweep: &SweepView| {
        let take = sweep.sweep.takes().find(|taken| taken.take.times >= Decimal::from(1))?;
        let from = &take.take.from;
        let message = match take.take.times > Decimal::from(1) {
            true => {
                format!(
                    "`times: {}` sets a load above the highest one that meets the objective in `{from}`",
                    take.take.times
                )
            }
            false => {
                format!(
                    "the load taken from `{from}` is the highest one that meets the objective there; the next higher \
                     load misses it"
                )
            }
        };
        let at = [steps!["sweeps", sweep.name], take.place].concat();
        Some(sweep.finding(
            at,
            message,
            "write a lower value, like `times: 0.8`, because a search finds the limit only to within its resolution \
             and servers vary from run to run",
        ))
    };
    view.sweeps.iter().filter_map(of).collect()
}
