//! Aggregates of a run's token events and of the gaps between them, computed without storing either.
//!
//! A run may have 10⁸ gaps, more than fit into the memory that a benchmark may use. The gaps are
//! therefore read twice. The first pass counts gaps by approximate length and computes the throughput of
//! the window. The second pass keeps the few values at which percentiles lie, so that percentiles are
//! exact, and computes the effective number of gaps from counts by request.

mod clusters;
mod histogram;
mod order;

use crate::metrics::{self, Kind};
use crate::plan::Percentile;
use crate::rows::{Facts, Measured, Replay};
use crate::units::Nanos;

use super::emission::Emitted;
use super::queue::Queue;
use super::received::Received;
use super::request::token_events;
use super::silence::Signs;
use super::stats::{Clustered, Counted, Estimate, Interval, Ordered, Summary, Value};
use super::worth::{Evidence, Span, Turns};
use super::{quantile, window};
use clusters::Clusters;
use histogram::{Counting, Histogram};
use order::Order;

/// The result of the first pass over a run: throughput, and the distribution of gaps.
#[derive(Debug, Clone, PartialEq)]
pub struct Events {
    /// Number of tokens in events inside the window, regardless of which request they belong to.
    pub(crate) tokens_inside: f64,
    /// Number of token events inside the window, regardless of which request they belong to.
    pub inside: u64,
    /// Number of requests of the window that have at least one gap.
    pub requests: u64,
    /// Number of gaps of length 0 in the window's requests, between events that arrived in the same read.
    pub(crate) zeros: u64,
    /// Number of tokens in the events of all requests, by part of the window.
    pub(super) emitted: Emitted,
    /// Number of tokens in the events of all requests, by part of the whole run.
    pub(super) received: Received,
    /// The instants at which any data arrived.
    pub(super) signs: Signs,
    /// For each requested limit: the number of gaps above it, among the gaps of the window's requests.
    above: Vec<(Nanos, u64)>,
    histogram: Histogram,
    /// Sum of all gaps of the window's requests, in nanoseconds.
    sum: u128,
}

impl Events {
    /// Makes the first pass over a run. `limits` contains the limits for which [`Events::above`] will be
    /// called.
    pub fn of<R: Replay + ?Sized>(run: &R, facts: &Facts, limits: &[Nanos]) -> Result<Events, R::Error> {
        let mut events = Events {
            tokens_inside: 0.0,
            inside: 0,
            requests: 0,
            zeros: 0,
            emitted: Emitted::new(run.rows(), facts),
            received: Received::new(facts),
            signs: Signs::new(facts),
            above: limits.iter().map(|limit| (*limit, 0)).collect(),
            histogram: Histogram::default(),
            sum: 0,
        };
        let mut counting = Counting::default();
        run.replay(&mut |row, gaps| events.take(row, gaps, facts, &mut counting))?;
        events.histogram = counting.finish();
        Ok(events)
    }

    fn take(&mut self, row: &Measured, gaps: &[u64], facts: &Facts, counting: &mut Counting) {
        for (at, tokens) in token_events(row, gaps, facts.stream) {
            self.emitted.add(at, tokens);
            self.received.add(at, tokens);
            self.signs.add(at);
            if window::contains(&facts.windows, at) {
                self.tokens_inside += tokens;
                self.inside += 1;
            }
        }
        self.signs.add_end(row);
        if !window::contains(&facts.windows, row.scheduled_ns) || gaps.is_empty() {
            return;
        }
        self.requests += 1;
        for gap in gaps {
            counting.add(*gap);
            self.sum += u128::from(*gap);
            self.zeros += u64::from(*gap == 0);
        }
        for (limit, above) in &mut self.above {
            *above += gaps.iter().filter(|gap| **gap > limit.0).count() as u64;
        }
    }

    /// Returns the number of gaps of the window's requests.
    pub fn gaps(&self) -> u64 {
        self.histogram.n
    }

    /// Returns the number of gaps above `limit`, which must be one of the limits of the first pass.
    pub fn above(&self, limit: Nanos) -> u64 {
        self.above.iter().find(|(asked, _)| *asked == limit).expect("the limit was requested").1
    }

    /// Returns the limits of the first pass.
    fn limits(&self) -> Vec<Nanos> {
        self.above.iter().map(|(limit, _)| *limit).collect()
    }

    /// Returns the mean gap in milliseconds; `None` without gaps.
    fn mean(&self) -> Option<f64> {
        (self.gaps() > 0).then(|| self.sum as f64 / self.gaps() as f64 / 1e6)
    }
}

/// Summaries of the gaps of the window's requests: the result of the second pass over a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaps {
    /// ITL in milliseconds, over all gaps pooled. Effective numbers and intervals are computed by
    /// request.
    pub itl: Summary,
    /// p99(ITL) / p50(ITL); `None` if either is unknown or p50 is 0.
    pub jitter: Option<f64>,
    /// Interval of the jitter ratio, computed from the ends of the intervals of p99 and p50. `None` if the
    /// ratio is `None` or if one of these intervals is missing.
    pub(crate) jitter_interval: Option<Interval>,
    clusters: Clusters,
}

impl Gaps {
    /// Makes the second pass over a run.
    pub fn of<R: Replay + ?Sized>(run: &R, facts: &Facts, events: &Events) -> Result<Gaps, R::Error> {
        Gaps::of_part(run, facts, events, Queue::of(run.rows(), facts).turns)
    }

    /// Makes the second pass over some requests of a run; `turns` describes the queue of the whole run.
    pub fn of_part<R: Replay + ?Sized>(
        run: &R,
        facts: &Facts,
        events: &Events,
        turns: Turns,
    ) -> Result<Gaps, R::Error> {
        let limits = events.limits();
        let clusters = Clusters::new(run.rows(), facts, &events.histogram, turns, &limits);
        let mut second = Second::new(events, clusters);
        if events.gaps() > 0 {
            run.replay(&mut |row, gaps| {
                if window::contains(&facts.windows, row.scheduled_ns) {
                    second.take(row.scheduled_ns, gaps);
                }
            })?;
        }
        Ok(second.finish())
    }

    /// Returns the gaps' evidence on one of the limits of the first pass, if at most the share `allowed`
    /// of the gaps may be above it.
    pub fn evidence(&self, events: &Events, limit: Nanos, allowed: f64) -> Evidence {
        self.clusters.evidence(&events.histogram, limit, allowed)
    }
}

/// The state of the second pass.
struct Second<'a> {
    events: &'a Events,
    order: Order,
    clusters: Clusters,
    /// Mean gap in milliseconds.
    mean: f64,
    /// Sum of squared differences from the mean.
    squares: f64,
}

impl<'a> Second<'a> {
    fn new(events: &'a Events, clusters: Clusters) -> Second<'a> {
        let n = events.gaps();
        let ends = |percentile| {
            let rank = n.saturating_sub(1) * quantile::permille(percentile) / 1000;
            [rank, rank + 1]
        };
        let ranks = quantile::ALL.into_iter().flat_map(ends);
        Second {
            order: Order::of(&events.histogram, ranks.filter(|rank| *rank < n)),
            clusters,
            mean: events.mean().unwrap_or_default(),
            squares: 0.0,
            events,
        }
    }

    fn take(&mut self, scheduled_ns: u64, gaps: &[u64]) {
        if gaps.is_empty() {
            return;
        }
        for gap in gaps {
            let bucket = histogram::bucket(*gap);
            self.order.take(bucket, *gap);
            self.clusters.take(bucket, *gap);
            self.squares += (millis(*gap) - self.mean).powi(2);
        }
        self.clusters.close(scheduled_ns);
    }

    fn finish(mut self) -> Gaps {
        self.order.finish();
        let Second { events, order, clusters, .. } = self;
        let histogram = &events.histogram;
        let at = |index: u64| millis(order.at(index));
        let largest = histogram.buckets.last().map(|bucket| millis(bucket.most));
        let ordered = Ordered { observed: histogram.n, at: &at, failures: 0, largest };
        let effective = quantile::ALL.map(|percentile| clusters.effective(histogram, percentile));
        let estimate = |percentile: Percentile| {
            let (requests, worth) = (clusters.requests(), effective[percentile as usize]);
            let need = quantile::need(percentile);
            if requests < fewest_requests() && histogram.n > 0 {
                return Estimate::NotEnough { n: requests, need: fewest_requests(), of: Counted::Requests };
            }
            if worth < need as f64 {
                return Estimate::NotEnough { n: worth as u64, need, of: Counted::Gaps };
            }
            let interval = clusters.interval(histogram, percentile).map(|span| spanned(histogram, span));
            ordered.known(percentile, interval, worth)
        };
        let itl = Summary {
            n: histogram.n,
            failures: 0,
            mean: events.mean(),
            sd: (histogram.n > 1).then(|| (self.squares / (histogram.n - 1) as f64).sqrt()),
            percentiles: quantile::ALL.map(estimate),
            max: largest.map(Value::Exact),
            above: None,
            below: None,
            clusters: Some(Clustered { requests: clusters.requests(), effective: effective.map(|worth| worth as u64) }),
        };
        let jitter = itl.tail_ratio();
        Gaps { jitter_interval: jitter.and_then(|_| of_ratio(&itl)), itl, jitter, clusters }
    }
}

/// Minimum number of requests for percentiles of gaps.
fn fewest_requests() -> u64 {
    match metrics::find("itl").map(|metric| metric.kind) {
        Some(Kind::Distribution { fewest_requests, .. }) => fewest_requests,
        _ => 0,
    }
}

/// Returns the interval between the values at these ranks, accurate to one part in 4 096.
fn spanned(histogram: &Histogram, span: Span) -> Interval {
    let end = |rank: Option<u64>| rank.map(|rank| Value::Exact(histogram.about(rank) / 1e6));
    Interval { low: end(span.low), high: end(span.high) }
}

/// Returns the interval of p99 / p50, formed by the ratios of the ends that are farthest apart. If the
/// intervals of p99 and p50 contain the true values, so does this interval. The upper end is `None` if
/// the median may be 0.
fn of_ratio(itl: &Summary) -> Option<Interval> {
    let [median, tail] = [Percentile::P50, Percentile::P99].map(|percentile| itl.percentile(percentile).interval());
    let (median, tail) = (median?, tail?);
    let ratio = |tail: Option<f64>, median: Option<f64>| Some(tail? / median.filter(|median| *median > 0.0)?);
    let low = ratio(tail.low_number(), median.high_number());
    let high = ratio(tail.high_number(), median.low_number());
    (low.is_some() || high.is_some()).then(|| Interval { low: low.map(Value::Exact), high: high.map(Value::Exact) })
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod simulations;
#[cfg(test)]
mod tests;
