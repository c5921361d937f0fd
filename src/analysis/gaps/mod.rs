//! What the token events of a run and the gaps between them come to, without holding them.
//!
//! A run may hold 10⁸ gaps, more than fits into the memory that a benchmark may take. They are gone through twice: the
//! first time counts how many have about each length, and what flowed through the window; the second keeps the few values
//! that percentiles lie at, which are exact, and counts by groups of requests for the bootstrap.

mod bootstrap;
mod histogram;
mod order;

use crate::plan::Percentile;
use crate::rows::{Facts, Measured, Replay};
use crate::units::Nanos;

use super::request::token_events;
use super::stats::{Interval, Ordered, Summary, Value};
use super::steady::Emitted;
use super::{quantile, window};
use bootstrap::Bootstrap;
use histogram::{Counting, Histogram};
use order::Order;

/// What the first time through a run gives: what flowed, and how gaps are spread.
#[derive(Debug, Clone, PartialEq)]
pub struct Events {
    /// Tokens of events inside the window, whichever request they belong to.
    pub tokens_inside: f64,
    /// Token events inside the window, whichever request they belong to.
    pub inside: u64,
    /// Requests of the window that have a gap.
    pub requests: u64,
    /// Gaps of 0 of the window's requests: events that came in one read.
    pub zeros: u64,
    /// Tokens of every request's events by block of the window's halves.
    pub(super) emitted: Emitted,
    /// How many gaps of the window's requests are above each limit that was asked for.
    above: Vec<(Nanos, u64)>,
    histogram: Histogram,
    /// Of all gaps of the window's requests, in nanoseconds.
    sum: u128,
}

impl Events {
    /// Goes through a run. `limits` are those that [`Events::above`] will be asked for.
    pub fn of<R: Replay + ?Sized>(run: &R, facts: &Facts, limits: &[Nanos]) -> Result<Events, R::Error> {
        let mut events = Events {
            tokens_inside: 0.0,
            inside: 0,
            requests: 0,
            zeros: 0,
            emitted: Emitted::new(run.rows(), facts),
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
            if window::contains(&facts.windows, at) {
                self.tokens_inside += tokens;
                self.inside += 1;
            }
        }
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

    /// Gaps of the window's requests.
    pub fn gaps(&self) -> u64 {
        self.histogram.n
    }

    /// Gaps above `limit`, which must be one of those that the run was gone through for.
    pub fn above(&self, limit: Nanos) -> u64 {
        self.above.iter().find(|(asked, _)| *asked == limit).expect("the limit was asked for").1
    }

    /// Mean gap in milliseconds; null without any.
    fn mean(&self) -> Option<f64> {
        (self.gaps() > 0).then(|| self.sum as f64 / self.gaps() as f64 / 1e6)
    }
}

/// What the gaps of the window's requests come to: what the second time through a run gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaps {
    /// ITL in milliseconds, every gap pooled; intervals from a bootstrap over requests.
    pub itl: Summary,
    /// p99(ITL) / p50(ITL); null when either is null or p50 is 0.
    pub jitter: Option<f64>,
    /// Bootstrap interval of the jitter ratio; null with it, and below 30 requests.
    pub jitter_interval: Option<Interval>,
}

impl Gaps {
    /// Goes through a run again.
    pub fn of<R: Replay + ?Sized>(run: &R, facts: &Facts, events: &Events) -> Result<Gaps, R::Error> {
        let mut second = Second::new(events);
        if events.gaps() > 0 {
            run.replay(&mut |row, gaps| {
                if window::contains(&facts.windows, row.scheduled_ns) {
                    second.take(gaps);
                }
            })?;
        }
        Ok(second.finish())
    }
}

/// The second time through, under way.
struct Second<'a> {
    events: &'a Events,
    order: Order,
    bootstrap: Bootstrap,
    /// Requests with gaps so far.
    request: usize,
    /// In milliseconds.
    mean: f64,
    /// Of differences from the mean.
    squares: f64,
}

impl<'a> Second<'a> {
    fn new(events: &'a Events) -> Second<'a> {
        let n = events.gaps();
        let ends = |percentile| {
            let rank = n.saturating_sub(1) * quantile::permille(percentile) / 1000;
            [rank, rank + 1]
        };
        let ranks = quantile::ALL.into_iter().flat_map(ends);
        Second {
            order: Order::of(&events.histogram, ranks.filter(|rank| *rank < n)),
            bootstrap: Bootstrap::new(&events.histogram, events.requests as usize),
            request: 0,
            mean: events.mean().unwrap_or_default(),
            squares: 0.0,
            events,
        }
    }

    fn take(&mut self, gaps: &[u64]) {
        if gaps.is_empty() {
            return;
        }
        for gap in gaps {
            let bucket = histogram::bucket(*gap);
            self.order.take(bucket, *gap);
            self.bootstrap.take(self.request, bucket);
            self.squares += (millis(*gap) - self.mean).powi(2);
        }
        self.request += 1;
    }

    fn finish(mut self) -> Gaps {
        self.order.finish();
        let histogram = &self.events.histogram;
        let resamples = self.bootstrap.resample(histogram);
        let at = |index: u64| millis(self.order.at(index));
        let largest = histogram.buckets.last().map(|bucket| millis(bucket.most));
        let ordered = Ordered { observed: histogram.n, at: &at, failures: 0, largest };
        let of = |percentile: Percentile| resamples.iter().map(move |sample| sample[percentile as usize] / 1e6);
        let estimate = |percentile| ordered.estimate(percentile, || bootstrap::spread(of(percentile)));
        let itl = Summary {
            n: histogram.n,
            failures: 0,
            mean: self.events.mean(),
            sd: (histogram.n > 1).then(|| (self.squares / (histogram.n - 1) as f64).sqrt()),
            percentiles: quantile::ALL.map(estimate),
            max: largest.map(Value::Exact),
            above: None,
        };
        let jitter = itl.tail_ratio();
        let ratios = of(Percentile::P99).zip(of(Percentile::P50)).filter(|(_, median)| *median > 0.0);
        let ratios = ratios.map(|(tail, median)| tail / median);
        Gaps { jitter_interval: jitter.and_then(|_| bootstrap::spread(ratios)), itl, jitter }
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests;
