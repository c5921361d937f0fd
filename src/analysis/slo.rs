//! Decides whether an SLO "p99 ≤ x" holds by testing the share of requests above x, rather than by
//! looking at the percentile.
//!
//! The SLO holds if so few requests exceed x that this would happen in at most 5 % of runs with a true
//! share of 1 − p. It misses if so many requests exceed x that this would also happen in at most 5 % of
//! such runs. Everything else is undecided, and undecided never counts as met. Requests that wait for
//! each other exceed the limit together, so the test uses their effective number ([`super::worth`]).

use indexmap::IndexMap;

use crate::plan::{Percentile, Slo};
use crate::rows::{Facts, Measured};
use crate::units::Nanos;

use super::gaps::{Events, Gaps};
use super::goodput::latencies;
use super::queue::Queue;
use super::request::{Metric, sample};
pub use super::worth::Answer;
use super::worth::Evidence;
use super::{quantile, undecided, window};

/// One limit of an SLO, with the result of testing it on a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SloTest {
    /// Key of the tested metric, as in the metric table; for open loops, `…_from_schedule`.
    pub metric: &'static str,
    /// The percentile that is limited.
    pub percentile: Percentile,
    /// The limit.
    pub limit: Nanos,
    /// Number of requests above the limit, including failures; for ITL, the number of gaps.
    pub above: u64,
    /// Number of requests that have the metric, including failures; for ITL, the number of gaps.
    pub n: u64,
    /// Number of requests that would show that the limit holds if none of them were above it, given the
    /// same dependence between requests. Called `need` in JSON.
    pub alike_needed: u64,
    /// The effective number of independent requests of the run for this limit, and how many requests
    /// were above it.
    pub evidence: Evidence,
    /// The result of the test.
    pub answer: Answer,
    /// Length of a window, in seconds, that would give a decision with the same share above the limit;
    /// `None` if the limit is already decided, or if a hundred times the window would not suffice.
    pub would_do: Option<f64>,
}

impl SloTest {
    /// Describes the limit: `ttft p95 ≤ 60ms`.
    pub fn name(&self) -> String {
        limit_name(self.metric, self.percentile, self.limit)
    }

    /// Returns the share of requests that may be above the limit.
    pub fn allowed(&self) -> f64 {
        1.0 - quantile::share(self.percentile)
    }

    /// Returns whether the run met the limit in what was seen, whether or not this is shown; `None` if no request
    /// has the metric.
    pub fn met(&self) -> Option<bool> {
        self.evidence.met(self.allowed())
    }

    /// Returns the observed share above the limit divided by the allowed share; above 1 if the limit was missed in
    /// what was seen.
    pub fn strain(&self) -> f64 {
        self.evidence.share() / self.allowed()
    }

    /// Describes on which side of its limit the percentile was observed; `None` if no request has the metric.
    pub fn observed(&self) -> Option<&'static str> {
        undecided::observed(&self.evidence, self.allowed())
    }

    /// Describes what would decide the limit.
    pub fn would_decide(&self) -> String {
        undecided::would_decide(&self.evidence, quantile::need_to_decide(self.percentile), self.would_do, 1)
    }
}

/// Describes a limit: `ttft p95 ≤ 60ms`.
pub(crate) fn limit_name(metric: &str, percentile: Percentile, limit: Nanos) -> String {
    format!("{metric} {} ≤ {limit}", percentile.name())
}

/// Returns the limits on single gaps, which `Events` must have counted for [`test()`].
pub fn gap_limits(slo: Option<&Slo>) -> Vec<Nanos> {
    slo.map_or_else(Vec::new, |slo| slo.itl.values().copied().collect())
}

/// Tests every latency limit of `slo` on one run. The events of the run must have been read with
/// [`gap_limits`].
pub fn test(rows: &[Measured], through: (&Events, &Gaps), facts: &Facts, slo: &Slo) -> Vec<SloTest> {
    let [ttft, tpot, e2e] = of_requests(rows, facts, slo);
    let itl = slo.itl.iter().map(|(percentile, limit)| of_gaps(through, facts, *percentile, *limit));
    ttft.into_iter().chain(itl).chain(tpot).chain(e2e).collect()
}

/// Tests the limits of `slo` on latencies that each request has once: TTFT, TPOT and E2E.
pub(crate) fn of_requests(rows: &[Measured], facts: &Facts, slo: &Slo) -> [Vec<SloTest>; 3] {
    let (ttft, e2e) = latencies(facts.open_loop);
    let names = if facts.open_loop { ["ttft_from_schedule", "e2e_from_schedule"] } else { ["ttft", "e2e"] };
    let members = window::in_order(rows, facts);
    let turns = Queue::of(rows, facts).turns;
    let tests = |limits: &IndexMap<Percentile, Nanos>, name, metric| -> Vec<SloTest> {
        if limits.is_empty() {
            return Vec::new();
        }
        let (sample, _) = sample(members.iter().map(|row| window::request(row, facts)), metric, turns);
        let evidence = |percentile, limit: Nanos| sample.evidence(limit.millis(), 1.0 - quantile::share(percentile));
        let decide = |(percentile, limit): (&Percentile, &Nanos)| {
            let asked = Threshold { metric: name, percentile: *percentile, limit: *limit };
            asked.decide(evidence(*percentile, *limit), facts)
        };
        limits.iter().map(decide).collect()
    };
    [tests(&slo.ttft, names[0], ttft), tests(&slo.tpot, "tpot", Metric::Tpot), tests(&slo.e2e, names[1], e2e)]
}

/// Combines the results of an SLO with several limits: it misses if one limit misses, and holds only if
/// all hold.
pub fn answer(tests: &[SloTest]) -> Answer {
    if tests.iter().any(|test| test.answer == Answer::Misses) {
        Answer::Misses
    } else if !tests.is_empty() && tests.iter().all(|test| test.answer == Answer::Holds) {
        Answer::Holds
    } else {
        Answer::Undecided
    }
}

/// One limit of an SLO, not yet tested.
struct Threshold {
    metric: &'static str,
    percentile: Percentile,
    limit: Nanos,
}

impl Threshold {
    fn decide(self, evidence: Evidence, facts: &Facts) -> SloTest {
        let Threshold { metric, percentile, limit } = self;
        let allowed = 1.0 - quantile::share(percentile);
        let answer = evidence.answer(allowed);
        let times = if answer == Answer::Undecided { evidence.would_do(allowed) } else { None };
        let least = quantile::need_to_decide(percentile);
        let each = if evidence.worth.requests > 0.0 { evidence.n as f64 / evidence.worth.requests } else { 1.0 };
        SloTest {
            metric,
            percentile,
            limit,
            above: evidence.above,
            n: evidence.n,
            alike_needed: least.max((least as f64 * each).ceil() as u64),
            evidence,
            answer,
            would_do: times.map(|times| times * facts.windows.measure_secs()),
        }
    }
}

/// Tests a limit on gaps. Gaps of one request are not independent, so the test uses their effective number,
/// which is computed by request.
fn of_gaps((events, gaps): (&Events, &Gaps), facts: &Facts, percentile: Percentile, limit: Nanos) -> SloTest {
    let evidence = gaps.evidence(events, limit, 1.0 - quantile::share(percentile));
    Threshold { metric: "itl", percentile, limit }.decide(evidence, facts)
}

/// Returns whether a million output tokens cost at most `limit`; undecided if the cost is unknown. This
/// is not a statistical test, because cost is computed from one count, which has no sampling error
/// within the run.
pub fn cost(cost_per_million: Option<f64>, limit: f64) -> Answer {
    match cost_per_million {
        Some(cost) if cost <= limit => Answer::Holds,
        Some(_) => Answer::Misses,
        None => Answer::Undecided,
    }
}

#[cfg(test)]
#[path = "slo_tests.rs"]
mod tests;
