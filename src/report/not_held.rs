//! Explains in words why a load does not meet the objective, for `capacity` and for the record of a
//! decision.

use super::curves::window_to_keep_up;
use crate::analysis::curve::{Limit, Rung};
use crate::analysis::saturation::State;
use crate::analysis::slo::Answer;

/// The reasons against a load, as one phrase each: limits that it misses or does not decide, its
/// queue, failures, and excluded repeats.
pub(crate) fn why_not_held(rung: &Rung) -> Vec<String> {
    let mut said = of_limits(rung);
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

/// The limits that a rung does not meet.
fn of_limits(rung: &Rung) -> Vec<String> {
    let of = |limit: &Limit| match limit.answer {
        Answer::Holds => None,
        Answer::Misses => Some(format!("{} misses ({})", limit.name(), limit.observation())),
        // A longer window does not help if the queue grows without bound.
        Answer::Undecided if rung.is_saturated() => None,
        Answer::Undecided => Some(format!("{} is undecided ({})", limit.name(), limit.why_undecided())),
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
