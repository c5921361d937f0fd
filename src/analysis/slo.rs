//! Whether an SLO "p99 ≤ x" holds: a test on the share of requests above x, not a look at the percentile.
//!
//! Holds: were the share above x as large as 1 − p, so few exceedances would come in at most 5 % of runs. Misses: so
//! many would. Everything else is undecided, and undecided is never held.

use indexmap::IndexMap;

use crate::plan::{Percentile, Slo};
use crate::rows::{Facts, Measured};
use crate::units::Nanos;

use super::gaps::{Events, Gaps};
use super::goodput::latencies;
use super::request::{Metric, Observation};
use super::{binomial, quantile, window};

/// Chance of a wrong `holds`, and of a wrong `misses`.
const LEVEL: f64 = 0.05;

/// What a test says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The limit is met, at 95 %.
    Holds,
    /// The limit is exceeded, at 95 %.
    Misses,
    /// Too little evidence for either.
    Undecided,
}

impl Answer {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::Misses => "misses",
            Answer::Undecided => "undecided",
        }
    }
}

/// One limit of an SLO, tested.
#[derive(Debug, Clone, PartialEq)]
pub struct SloTest {
    /// Key of the metric that was tested, as in the metric table: an open loop's are `…_from_schedule`.
    pub metric: &'static str,
    /// The percentile that is limited.
    pub percentile: Percentile,
    /// The limit.
    pub limit: Nanos,
    /// Requests above the limit, failures counted; for ITL, gaps above it.
    pub above: u64,
    /// Requests that have the metric, failures counted.
    pub n: u64,
    /// Requests it takes at least to show that the limit holds.
    pub need: u64,
    /// What the test says.
    pub answer: Answer,
}

/// The limits on single gaps: what `Events` must have counted for [`test()`].
pub fn gap_limits(slo: Option<&Slo>) -> Vec<Nanos> {
    slo.map_or_else(Vec::new, |slo| slo.itl.values().copied().collect())
}

/// Tests every latency limit of `slo` on one run, whose events were gone through with [`gap_limits`].
pub fn test(rows: &[Measured], through: (&Events, &Gaps), facts: &Facts, slo: &Slo) -> Vec<SloTest> {
    let (ttft, e2e) = latencies(facts.open_loop);
    let names = if facts.open_loop { ["ttft_from_schedule", "e2e_from_schedule"] } else { ["ttft", "e2e"] };
    let by_request = |limits: &IndexMap<Percentile, Nanos>, name, metric| -> Vec<SloTest> {
        let observed = |limit| exceedances(rows, facts, metric, limit);
        limits.iter().map(|(percentile, limit)| decide((name, *percentile, *limit), observed(*limit))).collect()
    };
    let mut tests = by_request(&slo.ttft, names[0], ttft);
    tests.extend(slo.itl.iter().map(|(percentile, limit)| decide_itl(through, *percentile, *limit)));
    tests.extend(by_request(&slo.tpot, "tpot", Metric::Tpot));
    tests.extend(by_request(&slo.e2e, names[1], e2e));
    tests
}

/// The answer of an SLO of several limits: it misses where one misses, and holds only where all hold.
pub fn answer(tests: &[SloTest]) -> Answer {
    if tests.iter().any(|test| test.answer == Answer::Misses) {
        Answer::Misses
    } else if !tests.is_empty() && tests.iter().all(|test| test.answer == Answer::Holds) {
        Answer::Holds
    } else {
        Answer::Undecided
    }
}

/// Requests above the limit, and requests that have the metric.
fn exceedances(rows: &[Measured], facts: &Facts, metric: Metric, limit: Nanos) -> (u64, u64) {
    let (mut above, mut n) = (0, 0);
    for row in window::members(rows, facts) {
        let exceeds = match window::request(row, facts).observe(metric) {
            Observation::Value(value) => value > limit.millis(),
            Observation::Failed(_) => true,
            Observation::Undefined => continue,
        };
        n += 1;
        above += u64::from(exceeds);
    }
    (above, n)
}

fn decide((metric, percentile, limit): (&'static str, Percentile, Nanos), (above, n): (u64, u64)) -> SloTest {
    let allowed = 1.0 - quantile::share(percentile);
    let answer = if n > 0 && binomial::at_most(n, allowed, above) <= LEVEL {
        Answer::Holds
    } else if n > 0 && binomial::at_least(n, allowed, above) <= LEVEL {
        Answer::Misses
    } else {
        Answer::Undecided
    };
    SloTest { metric, percentile, limit, above, n, need: quantile::need_to_decide(percentile), answer }
}

/// Gaps of one request are not independent, so ITL is decided by the bootstrap interval of its percentile; `holds`
/// takes as many requests as any other latency, because a bootstrap cannot see what never happened.
fn decide_itl((events, gaps): (&Events, &Gaps), percentile: Percentile, limit: Nanos) -> SloTest {
    let (n, above) = (events.requests, events.above(limit));
    let need = quantile::need_to_decide(percentile);
    let interval = gaps.itl.percentile(percentile).interval();
    let answer = match interval {
        Some(interval) if interval.low.or_infinity() > limit.millis() => Answer::Misses,
        Some(interval) if n >= need && interval.high.or_infinity() <= limit.millis() => Answer::Holds,
        _ => Answer::Undecided,
    };
    SloTest { metric: "itl", percentile, limit, above, n, need, answer }
}

/// Whether a million output tokens cost at most `limit`; undecided where the cost is not known. Not a test: cost follows
/// from one count, which has no sampling error within the run.
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
