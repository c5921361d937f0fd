//! Combines all runs of a load into one decision, which is the basis of curves, capacity and gates.
//!
//! The requests of all runs count together, weighted by their effective number within runs and by the
//! variation between runs ([`Evidence::together`]). The model assumes that repeats measure the same server
//! under the same load. This is not true for a repeat that was disturbed from outside, so a repeat with a
//! pause or a burst of errors is excluded and reported. But if at least half of the repeats have such an
//! event, these events are part of the server's behavior, and all repeats count.

use crate::analysis::Value;
use crate::analysis::metric::{self, Get};
use crate::analysis::quantile;
use crate::analysis::slo::{Answer, limit_name};
use crate::analysis::undecided;
use crate::analysis::worth::Evidence;
use crate::plan::Percentile;
use crate::units::Nanos;
use crate::units::text::digits;

use super::run::{EXCEPTIONS, Run};

/// One limit of the objective over the runs of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Key of the metric, as in the metric table.
    pub metric: &'static str,
    /// The percentile that is limited.
    pub percentile: Percentile,
    /// The limit.
    pub limit: Nanos,
    /// The lowest and the highest value of the percentile among the runs; `None` if a run has too few
    /// requests for it.
    pub observed: Option<[Value; 2]>,
    /// Number of runs.
    pub(crate) runs: usize,
    /// Combined evidence of the runs on the share of requests above the limit.
    pub evidence: Evidence,
    /// Minimum number of independent requests needed to show that the limit holds.
    pub(crate) independent_needed: u64,
    /// The result.
    pub answer: Answer,
    /// Window length, in seconds, that would give a decision with the same number of runs and the same
    /// share above the limit. `None` if the limit is already decided, or if no window of reasonable
    /// length would suffice because the share is too close to the allowed one.
    pub would_do: Option<f64>,
}

impl Limit {
    /// Describes the limit: `ttft p95 ≤ 60ms`.
    pub fn name(&self) -> String {
        limit_name(self.metric, self.percentile, self.limit)
    }

    /// Returns whether the runs met the limit in what was seen, whether or not this is shown; `None` if no
    /// request has the metric.
    pub fn met(&self) -> Option<bool> {
        self.evidence.met(1.0 - quantile::share(self.percentile))
    }

    /// Returns the factor by which the runs must become longer for a decision; `None` if no factor of
    /// reasonable size suffices.
    pub(super) fn grows(&self) -> Option<f64> {
        self.evidence.would_do(1.0 - quantile::share(self.percentile))
    }

    /// Describes the observation relative to the limit: `observed p95 87.3 ms, 12 of 212 requests (5.66
    /// %) above the limit, 5 % allowed`.
    pub fn observation(&self) -> String {
        let Evidence { n, above, .. } = self.evidence;
        let name = self.percentile.name();
        let percentile = match self.observed.map(|ends| ends.map(Value::short)) {
            Some([low, high]) if low == high => format!("observed {name} {low} ms, "),
            Some([low, high]) => format!("observed {name} {low} to {high} ms, "),
            None => String::new(),
        };
        let share = digits(above as f64 / n.max(1) as f64 * 100.0);
        let allowed = quantile::allowed_percent(self.percentile);
        let over = match above {
            0 => format!("none of {n} {}", self.counted()),
            _ => format!("{above} of {n} {} ({share} %)", self.counted()),
        };
        format!("{percentile}{over} above the limit, {allowed} % allowed")
    }

    fn counted(&self) -> &'static str {
        if self.metric == "itl" { "gaps" } else { "requests" }
    }

    /// States what was observed of an undecided limit, that it is not proven, and what would decide it: `observed
    /// to hold, not proven (0 of 40 requests above it; a window of 1.8 s would suffice)`. With `why`, also
    /// the reasons ([`Limit::why_undecided`]).
    pub fn undecided(&self, why: bool) -> String {
        let Evidence { n, above, .. } = self.evidence;
        let Some(observed) = undecided::observed(&self.evidence, 1.0 - quantile::share(self.percentile)) else {
            return "undecided (no request has this metric)".to_owned();
        };
        if why {
            return format!("{observed}, not proven ({})", self.why_undecided());
        }
        let decides = self.would_decide();
        format!("{observed}, not proven ({above} of {n} {} above it; {decides})", self.counted())
    }

    /// Explains why the limit is undecided and what would decide it: the observation, the number of
    /// independent requests that the runs are worth, and the window that would suffice.
    pub fn why_undecided(&self) -> String {
        let Evidence { n, above, worth, .. } = self.evidence;
        let (what, observed) = (self.counted(), self.observation());
        if n == 0 {
            return "no request has this metric".to_owned();
        }
        let (needed, decides) = (self.independent_needed, self.would_decide());
        let few = (worth.requests < needed as f64).then(|| match undecided::worth(&self.evidence) {
            Some(worth) => format!("; worth {worth} independent {what}"),
            None => format!("; {n} {what}"),
        });
        // With requests above the limit, more are needed.
        let least = few.as_ref().filter(|_| above == 0).map(|_| format!(", {needed} needed"));
        format!("{observed}{}{}; {decides}", few.unwrap_or_default(), least.unwrap_or_default())
    }

    /// Describes what would decide the limit.
    fn would_decide(&self) -> String {
        undecided::would_decide(&self.evidence, self.independent_needed, self.would_do, self.runs)
    }
}

/// Returns the lowest and the highest value of the percentile among the runs; `None` if a run has too
/// few requests for it, or only failures.
fn observed(runs: &[Run], key: &str, percentile: Percentile) -> Option<[Value; 2]> {
    let Get::Summary(get) = metric::get(metric::find(key)?) else { return None };
    let values: Vec<Value> =
        runs.iter().map(|run| get(run.metrics).percentile(percentile).value()).collect::<Option<_>>()?;
    if values.contains(&Value::Failed) {
        return None;
    }
    let rising = |a: &Value, b: &Value| a.or_infinity().total_cmp(&b.or_infinity());
    Some([values.iter().copied().min_by(rising)?, values.iter().copied().max_by(rising)?])
}

/// Decides every limit of the objective over runs of one load under one plan.
pub fn limits(runs: &[Run]) -> Vec<Limit> {
    let Some(first) = runs.first() else { return Vec::new() };
    let seconds: Vec<f64> = runs.iter().filter_map(|run| run.metrics.flow.seconds).collect();
    let window = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let over_runs = |at: usize| {
        let tested = &first.slo[at];
        let own = |run: &Run| run.slo.get(at).map(|test| test.evidence);
        let evidence = Evidence::together(&runs.iter().filter_map(own).collect::<Vec<_>>()).unwrap_or(tested.evidence);
        let allowed = 1.0 - quantile::share(tested.percentile);
        let answer = evidence.answer(allowed);
        let observed = observed(runs, tested.metric, tested.percentile);
        let times = evidence.would_do(allowed).filter(|_| answer == Answer::Undecided);
        Limit {
            metric: tested.metric,
            percentile: tested.percentile,
            limit: tested.limit,
            observed,
            runs: runs.len(),
            evidence,
            independent_needed: quantile::need_to_decide(tested.percentile),
            answer,
            would_do: times.map(|times| times * window).filter(|seconds| seconds.is_finite()),
        }
    };
    (0..first.slo.len()).map(over_runs).collect()
}

/// Combines the results for several limits: the objective misses if one limit misses, and holds only if
/// all hold. Without limits, it holds.
pub fn all(answers: impl Iterator<Item = Answer>) -> Answer {
    answers.fold(Answer::Holds, |so_far, answer| match (so_far, answer) {
        (Answer::Misses, _) | (_, Answer::Misses) => Answer::Misses,
        (Answer::Holds, Answer::Holds) => Answer::Holds,
        _ => Answer::Undecided,
    })
}

/// Combines the runs' results for cost. Cost has no error within a run, so the result is undecided if
/// runs differ. `None` without a cost limit.
pub(crate) fn unanimous(answers: &[Answer]) -> Option<Answer> {
    let first = *answers.first()?;
    Some(if answers.iter().all(|answer| *answer == first) { first } else { Answer::Undecided })
}

/// Returns the reason why a run may be an exception among its repeats; `None` if there is no such
/// reason.
pub(crate) fn exception(run: &Run) -> Option<&'static str> {
    run.verdict.reasons.iter().map(|reason| reason.name).find(|name| EXCEPTIONS.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    use Answer::{Holds, Misses, Undecided};

    #[test]
    fn an_objective_holds_where_all_of_it_holds() {
        assert_eq!(all([Holds, Holds].into_iter()), Holds);
        assert_eq!(all([Holds, Undecided].into_iter()), Undecided);
        assert_eq!(all([Undecided, Misses, Holds].into_iter()), Misses);
        assert_eq!(all([].into_iter()), Holds);
    }

    #[test]
    fn runs_that_differ_in_price_decide_nothing() {
        assert_eq!(unanimous(&[Misses, Misses]), Some(Misses));
        assert_eq!(unanimous(&[Holds, Misses]), Some(Undecided));
        assert_eq!(unanimous(&[]), None);
    }
}
