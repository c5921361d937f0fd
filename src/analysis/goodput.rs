//! Goodput: the share of the window's requests that met every threshold, with failures counted as misses.

use indexmap::IndexMap;

use crate::plan::{Goodput, Percentile, Slo};
use crate::rows::{Facts, Measured};
use crate::units::Nanos;

use super::measure::error_evidence;
use super::queue::Queue;
use super::request::{Metric, Observation, Request};
use super::window;
use super::worth::{Evidence, Sample, Turns};

/// Limits that each request must meet; a field is `None` if there is no limit on its latency.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Thresholds {
    /// Time to first token (open loop: from the schedule).
    pub ttft: Option<Nanos>,
    /// Time per output token.
    pub tpot: Option<Nanos>,
    /// End-to-end latency (open loop: from the schedule).
    pub e2e: Option<Nanos>,
}

/// Goodput of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GoodputMetrics {
    /// Good requests divided by all requests of the window.
    pub share: f64,
    /// Good requests of the window per second.
    pub(crate) requests_per_s: f64,
    /// Evidence that the requests provide on the share of misses.
    pub missing: Evidence,
}

impl Thresholds {
    /// Uses the plan's `goodput`, or else the thresholds of `slo`, whose `itl` limit applies to the request's
    /// TPOT. If an SLO has several percentiles of one latency, every request must meet the limit of the
    /// highest percentile.
    pub fn of(goodput: Option<&Goodput>, slo: Option<&Slo>) -> Thresholds {
        match (goodput, slo) {
            (Some(goodput), _) => Thresholds { ttft: goodput.ttft, tpot: goodput.tpot, e2e: goodput.e2e },
            (None, Some(slo)) => Thresholds {
                ttft: highest(&slo.ttft),
                tpot: highest(&slo.tpot).into_iter().chain(highest(&slo.itl)).min(),
                e2e: highest(&slo.e2e),
            },
            (None, None) => Thresholds::default(),
        }
    }

    fn met(&self, request: &Request, open_loop: bool) -> bool {
        let (ttft, e2e) = latencies(open_loop);
        let within = |limit: Option<Nanos>, observation: Observation| match (limit, observation) {
            (None, _) => true,
            (Some(limit), Observation::Value(value)) => value <= limit.millis(),
            (Some(_), Observation::Failed(_) | Observation::Undefined) => false,
        };
        // A response of one token has no time per token, so it cannot exceed the limit.
        let tpot = request.observe(Metric::Tpot);
        request.row.outcome.is_ok()
            && within(self.ttft, request.observe(ttft))
            && within(self.e2e, request.observe(e2e))
            && (tpot == Observation::Undefined || within(self.tpot, tpot))
    }
}

fn highest(limits: &IndexMap<Percentile, Nanos>) -> Option<Nanos> {
    limits.iter().max_by_key(|(percentile, _)| **percentile).map(|(_, limit)| *limit)
}

/// Returns the metrics behind an SLO's `ttft` and `e2e`. In an open loop, users wait from the scheduled
/// time.
pub(super) fn latencies(open_loop: bool) -> (Metric, Metric) {
    if open_loop { (Metric::TtftFromSchedule, Metric::E2eFromSchedule) } else { (Metric::Ttft, Metric::E2e) }
}

/// Computes goodput under `thresholds`. `None` without thresholds or requests, or if responses are not
/// streamed but a threshold limits ttft or tpot.
pub fn goodput(rows: &[Measured], facts: &Facts, thresholds: &Thresholds) -> Option<GoodputMetrics> {
    goodput_of_part(rows, facts, thresholds, Queue::of(rows, facts).turns)
}

/// Computes the goodput of some requests of a run as if they were the whole run; `turns` describes
/// the queue of the whole run.
pub(crate) fn goodput_of_part(
    rows: &[Measured],
    facts: &Facts,
    thresholds: &Thresholds,
    turns: Turns,
) -> Option<GoodputMetrics> {
    let unknowable = !facts.stream && (thresholds.ttft.is_some() || thresholds.tpot.is_some());
    let seconds = facts.windows.measure_secs();
    if *thresholds == Thresholds::default() || unknowable || seconds <= 0.0 {
        return None;
    }
    let members = window::in_order(rows, facts);
    let requests = || members.iter().map(|row| window::request(row, facts));
    let misses = requests().map(|request| f64::from(u8::from(!thresholds.met(&request, facts.open_loop))));
    let misses = Sample::new(misses.collect(), turns);
    let (missed, all) = (misses.above(0.0), misses.n());
    if all == 0 {
        return None;
    }
    let good = (all - missed) as f64;
    // If no request missed, or all did, the misses do not show how much requests depend on each other,
    // but the latencies do.
    let own = misses.evidence(0.0, missed as f64 / all as f64);
    let of_latencies = error_evidence(requests(), turns).map(|evidence| evidence.worth);
    let worth = of_latencies.filter(|worth| worth.requests < own.worth.requests).unwrap_or(own.worth);
    let missing = Evidence { worth, ..own };
    Some(GoodputMetrics { share: good / all as f64, requests_per_s: good / seconds, missing })
}

#[cfg(test)]
#[path = "goodput_tests.rs"]
mod tests;
