//! Explains in words why a load does not meet the objective, for `capacity` and for the record of a
//! decision.

use super::curves::window_to_keep_up;
use crate::analysis::curve::{Limit, Rung};
use crate::analysis::saturation::State;
use crate::analysis::slo::Answer;

/// Returns the reasons why a load does not meet the objective, as one phrase each: limits that are missed or
/// undecided, saturation, failures, and runs that do not count. `why` adds the reasons why limits are undecided.
pub(crate) fn why_not_held(rung: &Rung, why: bool) -> Vec<String> {
    let mut said = of_limits(rung, why);
    match rung.state() {
        Some(State::Saturated) => said.push("saturated".to_owned()),
        Some(State::NotShown) => {
            said.push(format!("it is not shown whether the server keeps up{}", window_to_keep_up(rung)));
        }
        Some(State::KeptUp) | None => {}
    }
    if rung.has_failed() {
        said.push("the server failed so many requests that the run is invalid".to_owned());
    }
    said.extend(rung.why_excluded().map(|why| format!("excluded: {why}")));
    said.extend(rung.why_given_up().map(|why| format!("given up: {why}")));
    said
}

/// Describes the limits that a rung does not meet.
fn of_limits(rung: &Rung, why: bool) -> Vec<String> {
    let of = |limit: &Limit| match limit.answer {
        Answer::Holds => None,
        Answer::Misses => Some(format!("{} misses ({})", limit.name(), limit.observation())),
        // An undecided limit of a saturated load is not listed, because a longer window would not decide it:
        // the queue grows without bound.
        Answer::Undecided if rung.is_saturated() => None,
        Answer::Undecided => Some(format!("{} {}", limit.name(), limit.undecided(why))),
    };
    let mut said: Vec<String> = rung.limits().iter().filter_map(of).collect();
    let dear = rung.runs.iter().find(|run| run.cost.is_some_and(|cost| cost != Answer::Holds));
    said.extend(dear.map(|run| {
        let cost = run.plan_metrics.cost_per_million_output_tokens;
        let cost = cost.map_or("is unknown (no price)".to_owned(), |cost| format!("misses ({cost:.2})"));
        format!("cost_per_million {cost}")
    }));
    said
}
