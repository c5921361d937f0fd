//! The worth of requests that depend on each other: the number of independent requests that would provide
//! the same evidence on the share above a level.
//!
//! Requests that queue behind each other are slow together, so near saturation a thousand of them are
//! worth only a few dozen independent ones. The worth is estimated from the run itself, from how much the
//! share above the level differs between blocks of requests (by batch means and by the integrated
//! autocorrelation time; the larger estimate counts). The share is computed at the level and at a nearby
//! level with more values above it, so that a window that happened to have no burst does not look quiet.
//! The worth is then reduced because the dependence itself is uncertain. If the queue was rarely observed
//! to fill and to drain, the worth is limited to a number of requests per swing. Constants were chosen by
//! simulating 44 queues (`cargo bench --bench claims`, `docs/METRICS.md`, Dependence).
//!
//! Intervals and tests of a share use the worth as the number of trials of a binomial distribution (Korn
//! and Graubard, Confidence Intervals for Proportions with Small Expected Number of Positive Counts
//! Estimated from Survey Data, 1998).

use super::binomial::{worth_at_least, worth_at_most};
use super::series::{PARTS, autocorrelation_time, blocks, edges, ranks, rising_order, swings, variance};
use super::student;

/// The constants for estimating the worth of a sample, for a claim about the share above a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rule {
    /// Number of batches whose means are compared.
    pub batches: usize,
    /// Constant for the uncertainty of the dependence: the variance is multiplied by 1 + `unsure` /
    /// √turnovers.
    pub(crate) unsure: f64,
    /// A window with at least this many swings of the requests in flight is long: its worth is
    /// determined by its own dependence.
    pub long: u32,
    /// A shorter window is worth at most this many independent requests for each swing.
    pub(crate) per_swing: f64,
}

impl Rule {
    /// Returns the rule for the share that may be above a level.
    pub(super) fn of(allowed: f64) -> Rule {
        let (batches, unsure, long) = match allowed {
            share if is_middle(share) => (10, 6.0, 60),
            share if share > 0.075 => (15, 7.0, 40),
            _ => (15, 4.0, 40),
        };
        let per_swing = match allowed {
            share if share > 0.4 => 0.75,
            share if share > 0.2 => 0.5,
            share if share > 0.075 => 6.0,
            share if share > 0.03 => 10.0,
            _ => 16.0,
        };
        Rule { batches, unsure, long, per_swing }
    }
}

/// Returns whether the share belongs to the middle of a distribution: a quarter or more.
fn is_middle(allowed: f64) -> bool {
    allowed > 0.2
}

/// Returns the second share at which dependence is estimated, in addition to the share of the claim.
pub(super) fn nearby(allowed: f64) -> f64 {
    if allowed > 0.4 { allowed / 2.5 } else { (5.0 * allowed).min(0.5) }
}

/// Numbers of swings of the requests in flight, and of the latencies, that are needed for an interval in
/// the middle of a distribution.
const MIDDLE_FLIGHT: u32 = 44;
const MIDDLE_VALUES: u32 = 20;

/// Two-sided levels: of an interval, and of a test, whose one-sided level is half as large.
pub(super) const INTERVAL: f64 = 0.05;
pub(super) const TEST: f64 = 0.10;
/// A suggested window is at most this many times as long as the window of the run.
pub(crate) const MOST_TIMES: f64 = 100.0;
/// The probability that a test gives a wrong answer.
const WRONG: f64 = TEST / 2.0;

/// How often the queue was observed to fill and to drain over the window, based on the requests in flight.
/// It is the same for all metrics of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turns {
    /// Number of swings of the requests in flight; `None` for a closed loop, where they provide no
    /// evidence.
    pub swings: Option<u32>,
    /// Number of parts of the window divided by the integrated autocorrelation time; infinite for a closed
    /// loop.
    pub(crate) turnovers: f64,
}

impl Turns {
    /// The turns of a closed loop.
    pub const CLOSED: Turns = Turns { swings: None, turnovers: f64::INFINITY };

    /// Computes the turns of an open loop from time averages of the requests in flight in [`PARTS`]
    /// parts of the window.
    pub fn of(averages: &[f64]) -> Turns {
        if averages.is_empty() {
            return Turns { swings: Some(0), turnovers: 1.0 };
        }
        let turnovers = averages.len() as f64 / autocorrelation_time(averages);
        Turns { swings: Some(swings(averages)), turnovers }
    }
}

/// Values of requests in scheduled order.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The values in scheduled order; failures are infinite.
    values: Vec<f64>,
    /// The values in rising order.
    rising: Vec<f64>,
    /// Index of the first value of each block, followed by the end.
    edges: Vec<usize>,
    turns: Turns,
    /// Number of swings of the ranks of blocks.
    swings: u32,
    /// Number of turnovers of the ranks of blocks.
    turnovers: f64,
}

impl Sample {
    /// Creates a sample from values in scheduled order, with infinity for failures.
    pub fn new(values: Vec<f64>, turns: Turns) -> Sample {
        let edges = edges(values.len(), PARTS);
        let order = rising_order(&values);
        let of_ranks = block_means(&edges, ranks(&values, &order).into_iter());
        let rising = order.iter().map(|index| values[*index as usize]).collect();
        let turnovers = of_ranks.len() as f64 / autocorrelation_time(&of_ranks);
        Sample { swings: swings(&of_ranks), turnovers, edges, rising, values, turns }
    }

    /// Returns the number of values.
    pub fn n(&self) -> u64 {
        self.values.len() as u64
    }

    /// Returns the values in rising order.
    pub fn rising(&self) -> &[f64] {
        &self.rising
    }

    /// Returns the number of values above a level.
    pub fn above(&self, level: f64) -> u64 {
        (self.rising.len() - self.rising.partition_point(|value| *value <= level)) as u64
    }

    /// Returns the value below which about the given share of all values lies. If that value is a failure,
    /// returns the largest value that is not a failure.
    fn quantile(&self, share: f64) -> f64 {
        let at = (share * (self.rising.len().max(1) - 1) as f64) as usize;
        let value = self.rising.get(at).copied().unwrap_or(0.0);
        if value.is_finite() { value } else { f64::MAX }
    }

    /// Returns whether all values are equal, except for the lowest and the highest twentieth.
    fn is_nearly_constant(&self) -> bool {
        let end = self.rising.len() / 20;
        let inner = self.rising.get(end..self.rising.len() - end).unwrap_or_default();
        inner.first() == inner.last()
    }

    /// Returns how many independent values this sample is worth for the share above `level`, when testing
    /// a claim about the share `allowed` at a two-sided level.
    fn worth(&self, level: f64, allowed: f64, claim: f64) -> Worth {
        let rule = Rule::of(allowed);
        let n = self.values.len() as f64;
        let few = few_batches(rule.batches, claim);
        let more = 1.0 + rule.unsure / self.turnovers.min(self.turns.turnovers).sqrt();
        let mut worth = n;
        for level in [level, self.quantile(1.0 - nearby(allowed))] {
            let is_above = self.values.iter().map(|value| f64::from(u8::from(*value > level)));
            let shares = block_means(&self.edges, is_above);
            let share = self.above(level) as f64 / n;
            if share > 0.0 && share < 1.0 {
                let effect = (long_run(&shares, rule.batches) * more * n / (share * (1.0 - share))).max(1.0);
                worth = worth.min(n / effect * few);
            }
        }
        let bound = self.turns.swings.filter(|swings| *swings < rule.long);
        let bound = bound.map(|swings| rule.per_swing * f64::from(swings.max(1)));
        match bound {
            Some(bound) if bound < worth => Worth { requests: bound, is_bound: true },
            _ => Worth { requests: worth, is_bound: false },
        }
    }

    /// Returns the evidence on a limit, if at most the share `allowed` of the values may be above it.
    pub fn evidence(&self, limit: f64, allowed: f64) -> Evidence {
        Evidence { n: self.n(), above: self.above(limit), worth: self.worth(limit, allowed, TEST) }
    }

    /// Returns the 95 % interval of the quantile at `share`, based on the order statistics of the
    /// equivalent number of independent values. An end is open if there are too few values for it. `None`
    /// if both ends are open. In the middle of a distribution (up to p75), also `None` unless both ends
    /// exist and the window is long.
    pub fn interval(&self, share: f64) -> Option<Span> {
        let allowed = 1.0 - share;
        // Values that are nearly constant cannot swing.
        let swings = if self.is_nearly_constant() { u32::MAX } else { self.swings };
        if self.values.is_empty() || !is_long_enough(allowed, self.turns, swings) {
            return None;
        }
        let worth = self.worth(self.quantile(share), allowed, INTERVAL).requests;
        given(ranks_of(self.n(), share, worth), allowed)
    }
}

/// Returns whether a window is long enough for an interval: in the middle of a distribution, both the
/// queue and the values must have swung often.
pub(super) fn is_long_enough(allowed: f64, turns: Turns, swings: u32) -> bool {
    let is_short = turns.swings.is_some_and(|swings| swings < MIDDLE_FLIGHT) || swings < MIDDLE_VALUES;
    !(is_middle(allowed) && is_short)
}

/// Returns the interval if it may be reported. In the middle of a distribution it must have both ends,
/// elsewhere at least one.
pub(super) fn given(span: Span, allowed: f64) -> Option<Span> {
    let is_given = if is_middle(allowed) {
        span.low.is_some() && span.high.is_some()
    } else {
        span.low.is_some() || span.high.is_some()
    };
    is_given.then_some(span)
}

/// Returns Clopper and Pearson's ranks for `worth` independent values, scaled to the actual number.
pub(super) fn ranks_of(n: u64, share: f64, worth: f64) -> Span {
    const TAIL: f64 = INTERVAL / 2.0;
    let stretch = n as f64 / worth;
    let at = |rank: f64| (rank.max(0.0) as u64).min(n - 1);
    let low = (worth_at_most(worth, share, 0.0) <= TAIL).then(|| {
        let rank = first(1.0, worth * share + 2.0, |rank| worth_at_most(worth, share, rank - 1.0) > TAIL);
        at((rank - 1.0) * stretch)
    });
    let high = (worth_at_least(worth, share, worth) <= TAIL).then(|| {
        let rank = first(worth * share - 1.0, worth, |rank| worth_at_least(worth, share, rank) <= TAIL);
        at((rank * stretch).ceil() - 1.0)
    });
    Span { low, high }
}

/// The ends of an interval, as indices of the values in rising order. An open end is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Index of the lower end.
    pub low: Option<u64>,
    /// Index of the upper end.
    pub high: Option<u64>,
}

/// How many independent requests a sample is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worth {
    /// The equivalent number of independent requests.
    pub requests: f64,
    /// Whether the number is limited by the swings of the queue rather than by the latencies.
    pub(crate) is_bound: bool,
}

/// The evidence that one or several runs provide on a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Number of requests.
    pub n: u64,
    /// Number of requests above the limit.
    pub above: u64,
    /// How many independent requests the `n` requests are worth.
    pub worth: Worth,
}

/// The result of a test of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Answer {
    /// The limit is met: at 95 %, no more than the allowed share is above it.
    Holds,
    /// The limit is exceeded: at 95 %, more than the allowed share is above it.
    Misses,
    /// There is too little evidence for either answer.
    Undecided,
}

impl Answer {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the result that the observation alone gives, whether or not it is shown: `met` is whether the
    /// observed share is within the allowed one.
    pub fn observed(met: bool) -> Answer {
        if met { Answer::Holds } else { Answer::Misses }
    }
}

impl Evidence {
    /// Returns whether at most the share `allowed` was above the limit in what was seen; `None` without
    /// requests.
    pub fn met(&self, allowed: f64) -> Option<bool> {
        // The tolerance is for shares like 1 − 0.9, which are slightly below the decimal share.
        (self.n > 0).then(|| self.share() <= allowed * (1.0 + 1e-9))
    }

    /// Returns the share above the limit; 0 without requests.
    pub fn share(&self) -> f64 {
        self.above as f64 / self.n.max(1) as f64
    }

    /// Tests whether at most the share `allowed` lies above the limit.
    pub fn answer(&self, allowed: f64) -> Answer {
        let (worth, share) = (self.worth.requests, self.share());
        if self.n == 0 {
            Answer::Undecided
        } else if worth_at_most(worth, allowed, share * worth) <= WRONG {
            Answer::Holds
        } else if worth_at_least(worth, allowed, share * worth) <= WRONG {
            Answer::Misses
        } else {
            Answer::Undecided
        }
    }

    /// Returns by what factor the number of requests, or the length, must grow to give a decision with the
    /// same share above the limit. `None` if even a factor of a hundred would not suffice, because the
    /// share is too close to the allowed one.
    pub fn would_do(&self, allowed: f64) -> Option<f64> {
        let (worth, share) = (self.worth.requests, self.share());
        if self.n == 0 {
            return None;
        }
        let decides = |times: f64| {
            let worth = worth * times;
            if share < allowed {
                worth_at_most(worth, allowed, share * worth) <= WRONG
            } else {
                worth_at_least(worth, allowed, share * worth) <= WRONG
            }
        };
        decides(MOST_TIMES).then(|| first(1.0, MOST_TIMES, decides))
    }

    /// Combines several runs of one load. Their requests have equal weight and their variances are added.
    /// If the runs differ by more than these variances explain, the worth is reduced accordingly, and
    /// further by Student's t if there are few runs. Weighting by worth would favor runs that happened to
    /// be quiet. `None` without runs.
    ///
    /// The model assumes that the shares of runs scatter around one share, with at least the variance that
    /// follows from their worth. Few runs cannot show how much larger the variance is: if two or three
    /// runs all happen to be low, they do not show that others are high.
    pub fn together(runs: &[Evidence]) -> Option<Evidence> {
        let runs: Vec<&Evidence> = runs.iter().filter(|run| run.n > 0).collect();
        let n: u64 = runs.iter().map(|run| run.n).sum();
        let above: u64 = runs.iter().map(|run| run.above).sum();
        if runs.is_empty() {
            return None;
        }
        let variance: f64 = runs.iter().map(|run| (run.n as f64 / n as f64).powi(2) / run.worth.requests).sum();
        let mut worth = 1.0 / variance;
        if let Some((excess, df)) = excess(&runs, above as f64 / n as f64)
            && excess > 1.0
        {
            worth *= few_degrees(df, TEST) / excess;
        }
        let is_bound = runs.iter().any(|run| run.worth.is_bound);
        Some(Evidence { n, above, worth: Worth { requests: worth, is_bound } })
    }
}

/// Returns two numbers. The first is the scatter of the runs' shares around the overall share, divided by
/// the scatter that their worth explains (1: equal). The second is the degrees of freedom of this ratio: n
/// − 1 for runs of equal worth, fewer if some runs are worth far less than others (Satterthwaite, An
/// Approximate Distribution of Estimates of Variance Components, 1946). `None` if there can be no scatter.
fn excess(runs: &[&Evidence], share: f64) -> Option<(f64, f64)> {
    if runs.len() < 2 || share <= 0.0 || share >= 1.0 {
        return None;
    }
    let all: f64 = runs.iter().map(|run| run.n as f64).sum();
    let (mut scatter, mut expected, mut own, mut mixed, mut mixed_own) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for run in runs {
        let weight = run.n as f64 / all;
        let variance = 1.0 / run.worth.requests;
        let part = weight * (1.0 - weight) * variance;
        scatter += weight * (run.share() - share).powi(2) / (share * (1.0 - share));
        expected += part;
        own += part * part;
        mixed += weight * weight * variance;
        mixed_own += (weight * weight * variance).powi(2);
    }
    // The trace of (A V)², where A is the matrix of the quadratic form and V is the diagonal matrix of the
    // runs' variances.
    let squares = own + mixed * mixed - mixed_own;
    Some((scatter / expected, (expected * expected / squares).max(1.0)))
}

/// Returns the factor by which the worth is reduced because its variance is estimated from few batches: (z /
/// t)².
pub(super) fn few_batches(batches: usize, claim: f64) -> f64 {
    few_degrees(batches as f64 - 1.0, claim)
}

fn few_degrees(df: f64, claim: f64) -> f64 {
    (student::critical(claim, 1e6) / student::critical(claim, df)).powi(2)
}

/// Returns the variance of the overall mean, estimated from block means: from the means of `batches` batches
/// of blocks, or from the autocorrelation of the blocks. The larger estimate is returned.
pub(super) fn long_run(means: &[f64], batches: usize) -> f64 {
    let of_batches = variance(&blocks(means, batches)) / batches.min(means.len()) as f64;
    let of_all = variance(means) * autocorrelation_time(means) / means.len() as f64;
    of_batches.max(of_all)
}

fn block_means(edges: &[usize], mut values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mean = |edge: &[usize]| {
        let size = edge[1] - edge[0];
        values.by_ref().take(size).sum::<f64>() / size as f64
    };
    edges.windows(2).map(mean).collect()
}

/// Returns the first number in `low..high` for which a condition holds, accurate to one part in 10⁹ of the
/// span. The condition must not become false again for larger numbers.
fn first(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..30 {
        let middle = low + (high - low) / 2.0;
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Returns values of an autoregressive series.
    fn series(n: usize, phi: f64, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut state = 0.0;
        let mut next = || {
            state = phi * state + (1.0 - phi * phi).sqrt() * (0..12).map(|_| rng.random::<f64>() - 0.5).sum::<f64>();
            state
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn what_depends_is_worth_less() {
        let independent = Sample::new(series(2_000, 0.0, 1), Turns::CLOSED);
        let dependent = Sample::new(series(2_000, 0.95, 1), Turns::CLOSED);
        let worth = |sample: &Sample| sample.evidence(sample.quantile(0.95), 0.05).worth.requests;
        assert!(worth(&independent) > 700.0, "{}", worth(&independent));
        assert!(worth(&dependent) < 250.0, "{}", worth(&dependent));
        let queued = Sample::new(series(2_000, 0.0, 1), Turns { swings: Some(3), turnovers: 12.0 });
        assert_eq!(queued.evidence(9.0, 0.05).worth, Worth { requests: 30.0, is_bound: true });
        assert_eq!(queued.interval(0.5), None);
    }

    #[test]
    fn a_limit_that_nothing_exceeds_is_worth_what_a_nearby_one_is() {
        let sample = Sample::new(series(2_000, 0.95, 2), Turns::CLOSED);
        let evidence = sample.evidence(100.0, 0.01);
        assert_eq!(evidence.above, 0);
        assert!(evidence.worth.requests < 500.0);
        let equal = Sample::new(vec![1.0; 500], Turns::CLOSED);
        assert_eq!(
            equal.evidence(2.0, 0.01),
            Evidence { n: 500, above: 0, worth: Worth { requests: 500.0, is_bound: false } }
        );
        assert_eq!(equal.evidence(2.0, 0.01).answer(0.01), Answer::Holds);
    }

    #[test]
    fn what_would_do_decides() {
        let evidence =
            |n: u64, above: u64| Evidence { n, above, worth: Worth { requests: n as f64 / 4.0, is_bound: false } };
        let short = evidence(400, 8);
        assert_eq!(short.answer(0.05), Answer::Undecided);
        let times = short.would_do(0.05).unwrap();
        assert!(times > 1.0);
        let longer = (times * 1.01 * 400.0) as u64;
        assert_eq!(evidence(longer, longer / 50).answer(0.05), Answer::Holds);
        assert_eq!(evidence(400, 20).would_do(0.05), None, "exactly the allowed share");
        assert_eq!(evidence(0, 0).answer(0.05), Answer::Undecided);
    }

    #[test]
    fn runs_that_differ_are_worth_less_together() {
        let run = |above: u64| Evidence { n: 1_000, above, worth: Worth { requests: 500.0, is_bound: false } };
        let alike = Evidence::together(&[run(30), run(31), run(29)]).unwrap();
        assert!((alike.worth.requests - 1_500.0).abs() < 1e-9);
        let apart = Evidence::together(&[run(0), run(90), run(0)]).unwrap();
        assert_eq!((apart.n, apart.above), (alike.n, alike.above));
        assert!(apart.worth.requests < 50.0);
        assert_eq!((alike.answer(0.05), apart.answer(0.05)), (Answer::Holds, Answer::Undecided));
        assert_eq!(Evidence::together(&[]), None);
    }

    #[test]
    fn runs_of_unequal_worth_have_fewer_degrees_of_freedom() {
        let run = |worth: f64| Evidence { n: 1_000, above: 50, worth: Worth { requests: worth, is_bound: false } };
        let df = |runs: &[Evidence]| excess(&runs.iter().collect::<Vec<_>>(), 0.05).unwrap().1;
        assert!((df(&[run(200.0); 5]) - 4.0).abs() < 1e-9);
        let unequal = df(&[run(400.0), run(400.0), run(20.0), run(400.0), run(400.0)]);
        assert!((1.0..2.0).contains(&unequal), "{unequal}");
        assert_eq!(excess(&[&run(9.0)], 0.05), None);
    }

    /// Shares of runs scatter around one share and are binomial within runs. The scatter between runs is
    /// either as large as the scatter within runs, or zero.
    #[test]
    fn repeats_hold_together_in_few_cases_where_they_miss() {
        const ALLOWED: f64 = 0.05;
        let cases: u32 = std::env::var("SWEEPLINE_SIMULATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
        for (count, worths, between) in [(3, [200, 200], 0.0), (3, [200, 200], 1.0), (5, [200, 40], 1.0)] {
            let mut rng = ChaCha8Rng::seed_from_u64(count);
            let mut holds = |share: f64| {
                let runs: Vec<Evidence> = (0..count as usize)
                    .map(|at| {
                        let worth = worths[at % 2];
                        let deviation = (between * share * (1.0 - share) / f64::from(worth)).sqrt();
                        let own = share + deviation * 12f64.sqrt() * (rng.random::<f64>() - 0.5);
                        let above = (0..worth).filter(|_| rng.random::<f64>() < own).count() as f64;
                        let above = (above / f64::from(worth) * 1_000.0) as u64;
                        Evidence { n: 1_000, above, worth: Worth { requests: worth.into(), is_bound: false } }
                    })
                    .collect();
                Evidence::together(&runs).unwrap().answer(ALLOWED) == Answer::Holds
            };
            let wrong = (0..cases).filter(|_| holds(1.2 * ALLOWED)).count();
            assert!(wrong as f64 <= 0.05 * f64::from(cases), "{count} runs worth {worths:?}: {wrong} of {cases}");
        }
    }

    #[test]
    fn failures_lie_above_every_limit() {
        let mut values = series(400, 0.0, 3);
        (0..40).for_each(|at| values[at * 10] = f64::INFINITY);
        let sample = Sample::new(values, Turns::CLOSED);
        assert_eq!(sample.above(1e300), 40);
        assert_eq!(sample.evidence(1e9, 0.05).answer(0.05), Answer::Misses);
        let high = sample.interval(0.9).unwrap().high.unwrap();
        assert!(sample.rising()[high as usize].is_infinite());
    }
}
