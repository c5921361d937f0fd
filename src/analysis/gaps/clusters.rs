//! The effective number of gaps. Gaps of one request resemble each other, and so do consecutive
//! requests: a thousand gaps of one stream provide little information about another stream.
//!
//! The share of gaps above a level is a ratio over requests: gaps above the level / gaps. Its variance
//! is linearized (Kish, Survey Sampling, 1965: ultimate clusters): once by requests, and once by blocks
//! of requests in scheduled order, like the variance of any other latency ([`worth`]). The variance
//! divided by the variance for independent gaps is the design effect, and the number of gaps divided by
//! the design effect is the effective number. Levels are borders of the histogram's buckets, so shares
//! are exact and levels are accurate to one part in 4 096. Intervals of percentiles invert the test of
//! shares (Woodruff, Confidence Intervals for Medians and Other Position Measures, 1952).
//!
//! Memory does not grow with the number of gaps: each level needs three sums, and one count for each of
//! at most [`PARTS`] blocks.

use crate::analysis::series::{PARTS, autocorrelation_time, edges, swings, variance};
use crate::analysis::worth::{self, Evidence, Rule, Span, Turns, Worth};
use crate::analysis::{quantile, window};
use crate::plan::Percentile;
use crate::rows::{Facts, Measured};
use crate::units::Nanos;

use super::histogram::Histogram;

/// Minimum number of requests with a gap above a level that is needed to determine how similar these
/// gaps are. With fewer such requests, the effective number of gaps is at most the number of requests.
const FEWEST_ABOVE: u64 = 10;

/// Sums over requests for one level.
#[derive(Debug, Clone, Default, PartialEq)]
struct Level {
    /// Number of gaps above the level.
    above: u64,
    /// Number of requests with a gap above the level.
    requests: u64,
    /// Sum over requests of the squared number of gaps above the level.
    squares: f64,
    /// Sum over requests of the number of gaps above the level × the number of all gaps of the request.
    cross: f64,
    /// Number of gaps above the level in each block.
    of_block: Vec<f64>,
}

/// Counts of gaps by level, request and block.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clusters {
    turns: Turns,
    /// When the first request of each block was scheduled.
    starts: Vec<u64>,
    /// For each level of the histogram, in rising order: the first bucket above it.
    borders: Vec<usize>,
    /// Number of levels below each bucket.
    passed: Vec<u8>,
    limits: Vec<Nanos>,
    /// The levels of `borders`, followed by those of `limits`.
    levels: Vec<Level>,
    /// Number of requests that have gaps.
    requests: u64,
    gaps: u64,
    /// Sum of the squares of each request's number of gaps.
    squares: f64,
    /// Number of gaps in each block.
    of_block: Vec<f64>,
    /// For each block: the sum of the bucket indices of its gaps. Indices behave like logarithms, so a
    /// single long gap does not dominate a block.
    buckets: Vec<f64>,
    /// For the current request: its gaps by the number of levels that they exceed, its gaps above each
    /// limit, and the sum of their bucket indices.
    by_passed: Vec<u64>,
    above_limits: Vec<u64>,
    bucket_sum: f64,
}

impl Clusters {
    /// Creates empty counts for a run whose gaps are distributed like `histogram`; `limits` contains the limits
    /// for which evidence will be requested.
    pub(super) fn new(
        rows: &[Measured],
        facts: &Facts,
        histogram: &Histogram,
        turns: Turns,
        limits: &[Nanos],
    ) -> Clusters {
        let starts = starts(rows, facts);
        let mut borders: Vec<usize> =
            quantile::ALL.into_iter().flat_map(shares).filter_map(|share| border(histogram, share)).collect();
        borders.sort_unstable();
        borders.dedup();
        let highest = histogram.buckets.last().map_or(0, |bucket| bucket.bucket + 1);
        let passed = (0..highest).map(|bucket| borders.partition_point(|border| *border <= bucket) as u8).collect();
        let blocks = vec![0.0; starts.len()];
        let level = Level { of_block: blocks.clone(), ..Level::default() };
        Clusters {
            turns,
            by_passed: vec![0; borders.len() + 1],
            above_limits: vec![0; limits.len()],
            levels: vec![level; borders.len() + limits.len()],
            limits: limits.to_vec(),
            starts,
            borders,
            passed,
            requests: 0,
            gaps: 0,
            squares: 0.0,
            buckets: blocks.clone(),
            of_block: blocks,
            bucket_sum: 0.0,
        }
    }

    /// Adds a gap of the current request.
    pub(super) fn take(&mut self, bucket: usize, gap: u64) {
        self.by_passed[usize::from(self.passed[bucket])] += 1;
        self.bucket_sum += bucket as f64;
        for (limit, above) in self.limits.iter().zip(&mut self.above_limits) {
            *above += u64::from(gap > limit.0);
        }
    }

    /// Ends the current request, which was scheduled at `scheduled_ns`.
    pub(super) fn close(&mut self, scheduled_ns: u64) {
        let block = self.starts.partition_point(|start| *start <= scheduled_ns).saturating_sub(1);
        let gaps: u64 = self.by_passed.iter().sum();
        self.requests += 1;
        self.gaps += gaps;
        self.squares += (gaps as f64).powi(2);
        self.of_block[block] += gaps as f64;
        self.buckets[block] += std::mem::take(&mut self.bucket_sum);
        let mut above = gaps;
        let of_borders = self.by_passed.iter().map(|passed| {
            above -= passed;
            above
        });
        let counts = of_borders.take(self.borders.len()).chain(self.above_limits.iter().copied());
        for (level, above) in self.levels.iter_mut().zip(counts) {
            level.above += above;
            level.requests += u64::from(above > 0);
            level.squares += (above as f64).powi(2);
            level.cross += above as f64 * gaps as f64;
            level.of_block[block] += above as f64;
        }
        self.by_passed.fill(0);
        self.above_limits.fill(0);
    }

    /// Returns the number of requests with gaps.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the effective number of gaps for a percentile: the number of independent gaps that would
    /// provide the same evidence about the share of gaps above the percentile.
    pub(super) fn effective(&self, histogram: &Histogram, percentile: Percentile) -> f64 {
        let levels = shares(percentile).into_iter().filter_map(|share| self.at_share(histogram, share));
        let effect = levels.filter_map(|level| self.effect(level)).fold(1.0, f64::max);
        self.gaps as f64 / effect
    }

    /// Returns the ranks of the 95 % interval of a percentile, like [`worth::Sample::interval`] for
    /// requests.
    pub(super) fn interval(&self, histogram: &Histogram, percentile: Percentile) -> Option<Span> {
        let allowed = 1.0 - quantile::share(percentile);
        let course = self.course();
        // If the gaps are alike in all blocks, they cannot swing.
        let swings = if variance(&course) > 0.0 { swings(&course) } else { u32::MAX };
        if self.gaps == 0 || !worth::is_long_enough(allowed, self.turns, swings) {
            return None;
        }
        let level = self.at_share(histogram, allowed);
        let worth = self.worth(histogram, level, allowed, worth::INTERVAL).requests;
        worth::given(worth::ranks_of(self.gaps, quantile::share(percentile), worth), allowed)
    }

    /// Returns the gaps' evidence on one of the requested limits, if at most the share `allowed` of the
    /// gaps may be above it.
    pub(super) fn evidence(&self, histogram: &Histogram, limit: Nanos, allowed: f64) -> Evidence {
        let at = self.limits.iter().position(|asked| *asked == limit).expect("the limit was requested");
        let level = &self.levels[self.borders.len() + at];
        let worth = self.worth(histogram, Some(level), allowed, worth::TEST);
        Evidence { n: self.gaps, above: level.above, worth }
    }

    /// Returns how many independent gaps these gaps are worth for the share above a level, when testing
    /// a claim about the share `allowed` at a two-sided level.
    fn worth(&self, histogram: &Histogram, level: Option<&Level>, allowed: f64, claim: f64) -> Worth {
        let rule = Rule::of(allowed);
        let course = self.course();
        let turnovers = course.len() as f64 / autocorrelation_time(&course);
        let more = 1.0 + rule.unsure / turnovers.min(self.turns.turnovers).sqrt();
        let few = worth::few_batches(rule.batches.min(self.starts.len()).max(2), claim);
        let nearby = self.at_share(histogram, worth::nearby(allowed));
        let (gaps, requests) = (self.gaps as f64, self.requests as f64);
        let (mut worth, mut of_request) = (gaps, gaps / requests.max(1.0));
        for level in level.into_iter().chain(nearby) {
            let Some(effect) = self.effect(level) else { continue };
            let serial = self.serial_effect(level, rule.batches);
            worth = worth.min(gaps / (effect.max(serial) * more) * few);
            of_request = of_request.min(gaps / effect / requests);
        }
        if level.is_none_or(|level| level.requests < FEWEST_ABOVE) {
            worth = worth.min(requests);
        }
        // Each swing of the queue is worth this many independent requests, and each request is worth its
        // effective number of gaps.
        let bound = self.turns.swings.filter(|swings| *swings < rule.long);
        let bound = bound.map(|swings| rule.per_swing * f64::from(swings.max(1)) * of_request.max(1.0));
        match bound {
            Some(bound) if bound < worth => Worth { requests: bound, is_bound: true },
            _ => Worth { requests: worth, is_bound: false },
        }
    }

    /// Returns the design effect of a level, treating requests as independent; `None` if no gaps or all
    /// gaps are above the level.
    fn effect(&self, level: &Level) -> Option<f64> {
        let (gaps, requests) = (self.gaps as f64, self.requests as f64);
        let share = level.above as f64 / gaps;
        if !(share > 0.0 && share < 1.0) {
            return None;
        }
        let squares = level.squares - 2.0 * share * level.cross + share * share * self.squares;
        let variance = squares * requests / (requests - 1.0).max(1.0) / (gaps * gaps);
        Some((variance * gaps / (share * (1.0 - share))).max(1.0))
    }

    /// Returns the design effect of a level, computed from blocks of requests, which may depend on
    /// earlier blocks.
    fn serial_effect(&self, level: &Level, batches: usize) -> f64 {
        let gaps = self.gaps as f64;
        let share = level.above as f64 / gaps;
        let blocks = self.of_block.len() as f64;
        let residual = |(above, all): (&f64, &f64)| (above - share * all) * blocks / gaps;
        let residuals: Vec<f64> = level.of_block.iter().zip(&self.of_block).map(residual).collect();
        (worth::long_run(&residuals, batches) * gaps / (share * (1.0 - share))).max(1.0)
    }

    /// Approximates the mean logarithm of the gaps in each block.
    fn course(&self) -> Vec<f64> {
        let filled = self.buckets.iter().zip(&self.of_block).filter(|(_, gaps)| **gaps > 0.0);
        filled.map(|(sum, gaps)| sum / gaps).collect()
    }

    /// Returns the level above which about the given share of all gaps lies; `None` without gaps.
    fn at_share(&self, histogram: &Histogram, share: f64) -> Option<&Level> {
        let border = border(histogram, share)?;
        let at = self.borders.iter().position(|known| *known == border)?;
        Some(&self.levels[at])
    }
}

/// Returns the shares above the two levels that are used for a percentile: the percentile's own share, and a
/// larger share.
fn shares(percentile: Percentile) -> [f64; 2] {
    let allowed = 1.0 - quantile::share(percentile);
    [allowed, worth::nearby(allowed)]
}

/// Returns the first bucket above the level that about the given share of all gaps exceeds. The level is
/// at the nearer end of the bucket into which the share falls. `None` without gaps.
fn border(histogram: &Histogram, share: f64) -> Option<usize> {
    let last = histogram.n.checked_sub(1)?;
    let rank = ((1.0 - share) * last as f64) as u64;
    let bucket = histogram.of_rank(rank);
    let wanted = share * histogram.n as f64;
    let with = (histogram.n - bucket.before) as f64;
    let is_with = (with - wanted).abs() < (with - bucket.count as f64 - wanted).abs() && bucket.before > 0;
    Some(if is_with { bucket.bucket } else { bucket.bucket + 1 })
}

/// Returns when the first request of each block was scheduled, for the window's requests with gaps.
fn starts(rows: &[Measured], facts: &Facts) -> Vec<u64> {
    let has_gaps = |row: &&Measured| row.events >= 2;
    let mut scheduled: Vec<u64> = window::members(rows, facts).filter(has_gaps).map(|row| row.scheduled_ns).collect();
    scheduled.sort_unstable();
    let mut starts: Vec<u64> =
        edges(scheduled.len(), PARTS).iter().filter_map(|edge| scheduled.get(*edge).copied()).collect();
    starts.dedup();
    if starts.is_empty() { vec![0] } else { starts }
}
