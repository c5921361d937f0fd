//! Finds where a curve bends: the load beyond which the gain in throughput no longer justifies the additional
//! latency.
//!
//! In open loops, this is the load with the most *power*, which is throughput divided by latency
//! (Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer
//! communications", ICC 1979). For one server with Poisson arrivals and service times with a coefficient
//! of variation c, this load is at a utilization of 1 / (1 + √((1 + c²) / 2)).
//!
//! In closed loops, this is the load at which the two bounds of operational analysis meet (Denning and
//! Buzen, "The operational analysis of queueing network models", 1978). The throughput of a few requests
//! in flight is at most N / R₀, and the throughput of many is at most X_max, so N* = X_max × R₀. R₀ is
//! the latency at the lightest load, and X_max is the highest throughput. This requires that the curve
//! is flat at its end; otherwise it has not bent yet.
//!
//! With repeats, the knee has an interval. In open loops, it is based on the loads whose power is not
//! shown to be less than the power of the best load (Gupta, "On some multiple decision rules", 1965;
//! Welch's t on logarithms, 5 % split over the loads). The interval extends from the load below the
//! lowest of these loads to the load above the highest. In closed loops, the same method is applied to
//! the throughputs, each multiplied by R₀, with Student's t for the product. An end outside the measured
//! loads is unknown. The model assumes that repeats of a load are independent and that their logarithms
//! scatter equally about the mean. With only one run per load, the scatter is unknown, and the interval
//! spans the loads adjacent to the knee.

use crate::analysis::series::{mean, variance};
use crate::analysis::student;

/// One run at a load of a curve, or the mean of all runs at this load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The load: arrivals per second, or the number of requests in flight.
    pub load: f64,
    /// Completed requests per second.
    pub throughput: f64,
    /// Mean latency of a request, in seconds.
    pub latency: f64,
}

/// Basis of a knee's interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The loads adjacent to the knee, because some load has only one run.
    Neighbours,
    /// The scatter of the runs, because every load has two runs or more.
    Repeats,
}

impl Basis {
    /// Returns the name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Neighbours => "adjacent loads",
            Basis::Repeats => "t over repeats",
        }
    }
}

/// The range in which a knee may lie, at 95 % confidence if it is based on repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The lower end; `None` if it lies below the measured loads.
    pub low: Option<f64>,
    /// The upper end; `None` if it lies above the measured loads.
    pub high: Option<f64>,
    /// The basis of the range.
    pub basis: Basis,
}

/// Where a curve bends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Knee {
    /// The curve bends at this load.
    At {
        /// The load.
        load: f64,
        /// The adjacent loads of the ladder.
        between: (f64, f64),
        /// The range in which the knee may lie.
        range: Range,
    },
    /// The curve still rises at its last load.
    NotReached {
        /// The last two loads that count.
        between: (f64, f64),
        /// The share by which throughput grows from one to the other.
        rise: f64,
    },
    /// The curve falls from the first load on, so the knee is at or below that load.
    Before(f64),
    /// The two bounds of a closed loop meet above its heaviest load.
    Beyond {
        /// The load at which the bounds meet.
        meet: f64,
        /// The heaviest load.
        heaviest: f64,
    },
    /// There are fewer than three loads.
    TooFew(usize),
}

/// Throughput is flat if its rise from one load to the next is less than this share of the load's rise.
const FLAT: f64 = 0.1;

/// The chance that an interval misses the knee.
const LEVEL: f64 = 0.05;

/// Finds the knee of an open loop; `rungs` contains the runs of each load in rising order of load, and
/// `ceiling` is a load above them that the server does not sustain.
pub fn open(rungs: &[Vec<Step>], ceiling: Option<f64>) -> Knee {
    let steps: Vec<Step> = rungs.iter().map(|runs| averaged(runs)).collect();
    if steps.len() + usize::from(ceiling.is_some()) < 3 || steps.is_empty() {
        return Knee::TooFew(steps.len());
    }
    let power = |step: &Step| step.throughput / step.latency;
    let best = (0..steps.len()).max_by(|a, b| power(&steps[*a]).total_cmp(&power(&steps[*b]))).unwrap_or(0);
    let load_at = |at: usize| steps.get(at).map(|step| step.load).or(ceiling);
    let Some(below) = best.checked_sub(1) else { return Knee::Before(steps[0].load) };
    let Some(above) = load_at(best + 1) else { return not_reached(&steps) };
    let between = (steps[below].load, above);
    let range = match over_repeats(rungs, |step| power(step).ln()) {
        None => Range { low: Some(between.0), high: Some(between.1), basis: Basis::Neighbours },
        Some(spreads) => {
            let candidates = not_less(&spreads, best);
            let (lowest, highest) = (candidates[0], candidates[candidates.len() - 1]);
            let low = lowest.checked_sub(1).map(|at| steps[at].load);
            Range { low, high: load_at(highest + 1), basis: Basis::Repeats }
        }
    };
    Knee::At { load: steps[best].load, between, range }
}

/// Finds the knee of a closed loop; `rungs` contains the runs of each load in rising order of load.
pub fn closed(rungs: &[Vec<Step>]) -> Knee {
    let steps: Vec<Step> = rungs.iter().map(|runs| averaged(runs)).collect();
    if steps.len() < 3 {
        return Knee::TooFew(steps.len());
    }
    let last = steps.len() - 1;
    let grown = steps[last].load / steps[last - 1].load - 1.0;
    if rise(&steps) > FLAT * grown {
        return not_reached(&steps);
    }
    let best = (0..steps.len()).max_by(|a, b| steps[*a].throughput.total_cmp(&steps[*b].throughput)).unwrap_or(0);
    // Requests may wait for each other even at the lightest load, so its latency is at least R₀.
    let load = steps[best].throughput * steps[0].latency;
    if load <= steps[0].load {
        return Knee::Before(steps[0].load);
    }
    let (lightest, heaviest) = (steps[0].load, steps[last].load);
    if load > heaviest {
        return Knee::Beyond { meet: load, heaviest };
    }
    let loads = || steps.iter().map(|step| step.load);
    let below = loads().filter(|at| *at < load).fold(lightest, f64::max);
    let above = loads().filter(|at| *at > load).fold(heaviest, f64::min);
    let between = (below, above);
    let throughputs = over_repeats(rungs, |step| step.throughput.ln());
    let range = match throughputs.zip(over_repeats(&rungs[..1], |step| step.latency.ln())) {
        None => Range { low: Some(between.0), high: Some(between.1), basis: Basis::Neighbours },
        Some((throughputs, alone)) => {
            let ends = not_less(&throughputs, best).into_iter().map(|at| throughputs[at].plus(&alone[0]).ends(LEVEL));
            let (low, high) =
                ends.fold((f64::INFINITY, 0.0f64), |(low, high), ends| (low.min(ends.0.exp()), high.max(ends.1.exp())));
            let (low, high) = (Some(low).filter(|low| *low >= lightest), Some(high).filter(|high| *high <= heaviest));
            Range { low, high, basis: Basis::Repeats }
        }
    };
    Knee::At { load, between, range }
}

/// Returns the mean of a load's runs.
fn averaged(runs: &[Step]) -> Step {
    let mean_of = |of: fn(&Step) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    Step {
        // The same for all of them; their mean may differ in its last digit.
        load: runs[0].load,
        throughput: mean_of(|step| step.throughput),
        latency: mean_of(|step| step.latency),
    }
}

/// A mean over runs, and the variance of this mean as estimated from the runs.
#[derive(Debug, Clone, Copy)]
struct Spread {
    mean: f64,
    variance: f64,
    df: f64,
}

impl Spread {
    /// Returns the sum of two independent means, with degrees of freedom by Welch and Satterthwaite.
    fn plus(&self, other: &Spread) -> Spread {
        let variance = self.variance + other.variance;
        let parts = self.variance.powi(2) / self.df + other.variance.powi(2) / other.df;
        let df = if parts > 0.0 { variance.powi(2) / parts } else { self.df };
        Spread { mean: self.mean + other.mean, variance, df }
    }

    /// Returns the interval that misses the true value with probability `level`.
    fn ends(&self, level: f64) -> (f64, f64) {
        let half = student::critical(level, self.df) * self.variance.sqrt();
        (self.mean - half, self.mean + half)
    }
}

/// Computes a figure of each load over its repeats; `None` unless each load has two runs or more.
fn over_repeats(rungs: &[Vec<Step>], of: impl Fn(&Step) -> f64) -> Option<Vec<Spread>> {
    let spread = |runs: &Vec<Step>| {
        let values: Vec<f64> = runs.iter().map(&of).collect();
        let df = values.len().checked_sub(2)? as f64 + 1.0;
        Some(Spread { mean: mean(&values), variance: variance(&values) / values.len() as f64, df })
    };
    rungs.iter().map(spread).collect()
}

/// Returns the loads whose mean is not shown to be lower than the mean of the best load, in rising order and
/// including the best load.
fn not_less(spreads: &[Spread], best: usize) -> Vec<usize> {
    let others = (spreads.len() - 1).max(1) as f64;
    let is_candidate = |at: &usize| {
        let turned = Spread { mean: -spreads[*at].mean, ..spreads[*at] };
        // The test is one-sided, hence twice the level.
        let lead = spreads[best].plus(&turned);
        *at == best || lead.ends(2.0 * LEVEL / others).0 <= 0.0
    };
    (0..spreads.len()).filter(is_candidate).collect()
}

fn not_reached(steps: &[Step]) -> Knee {
    let last = steps.len() - 1;
    Knee::NotReached { between: (steps[last - 1].load, steps[last].load), rise: rise(steps) }
}

/// Returns the relative rise of throughput from the second-to-last load to the last.
fn rise(steps: &[Step]) -> f64 {
    let [.., before, last] = steps else { return 0.0 };
    last.throughput / before.throughput - 1.0
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Returns the throughput and the mean latency of an M/G/1 queue by the Pollaczek–Khinchine formula.
    /// Service times have mean 1 and coefficient of variation `cv`.
    fn one_server(cv: f64, load: f64) -> Step {
        let latency = 1.0 + load * (1.0 + cv * cv) / (2.0 * (1.0 - load));
        Step { load, throughput: load, latency }
    }

    /// Returns the same figures for an M/G/k queue, by Erlang's C formula and Lee and Longton's factor for
    /// the variation of service times.
    fn servers(k: u32, cv: f64, load: f64) -> Step {
        let (servers, utilization) = (f64::from(k), load / f64::from(k));
        let mut term = 1.0;
        let mut below = 0.0;
        for n in 0..k {
            below += term;
            term *= load / f64::from(n + 1);
        }
        let queued = term / (1.0 - utilization);
        let waits = queued / (below + queued);
        let wait = waits / (servers - load) * (1.0 + cv * cv) / 2.0;
        Step { load, throughput: load, latency: 1.0 + wait }
    }

    fn ladder(from: f64, to: f64, step: f64) -> impl Iterator<Item = f64> {
        let rungs = ((to - from) / step).round() as u32;
        (0..=rungs).map(move |n| from + f64::from(n) * step)
    }

    /// Returns one run of each load.
    fn single(steps: impl IntoIterator<Item = Step>) -> Vec<Vec<Step>> {
        steps.into_iter().map(|step| vec![step]).collect()
    }

    fn between(knee: Knee) -> (f64, f64) {
        let Knee::At { between, .. } = knee else { panic!("{knee:?}") };
        between
    }

    #[test]
    fn one_server_bends_where_kleinrock_says() {
        for cv in [0.0, 0.5, 1.0, 2.0] {
            let known = 1.0 / (1.0 + ((1.0 + cv * cv) / 2.0_f64).sqrt());
            let steps = single(ladder(0.1, 0.95, 0.05).map(|load| one_server(cv, load)));
            let (low, high) = between(open(&steps, None));
            assert!(low <= known && known <= high, "cv {cv}: {known} is not in {low}..{high}");
        }
    }

    #[test]
    fn several_servers_bend_where_a_fine_search_says() {
        for (k, cv) in [(2, 1.0), (8, 1.0), (8, 0.3), (32, 1.5)] {
            let fine = single((1..1_000).map(|n| servers(k, cv, f64::from(k) * f64::from(n) / 1_000.0)));
            let Knee::At { load: known, .. } = open(&fine, None) else { panic!("no knee") };
            let capacity = f64::from(k);
            let rungs = ladder(0.1 * capacity, 0.95 * capacity, 0.05 * capacity).map(|load| servers(k, cv, load));
            // A load beyond the capacity, which the server does not sustain.
            let (low, high) = between(open(&single(rungs), Some(capacity * 1.2)));
            assert!(low <= known && known <= high, "k {k}, cv {cv}: {known} is not in {low}..{high}");
        }
    }

    #[test]
    fn a_closed_loop_bends_at_its_servers() {
        for k in [1.0, 6.0, 16.0, 40.0_f64] {
            let at = |load: f64| Step { load, throughput: load.min(k) / 0.5, latency: 0.5 * (load / k).max(1.0) };
            let steps = single([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0].map(at));
            let Knee::At { load, between, .. } = closed(&steps) else { panic!("no knee") };
            assert!((load - k).abs() < 1e-9 && between.0 <= k && k <= between.1, "{k}: {load}, {between:?}");
        }
    }

    #[test]
    fn a_curve_that_has_not_bent_says_so() {
        let linear = |load: f64| Step { load, throughput: load * 2.0, latency: 0.5 };
        let steps = single([1.0, 2.0, 4.0].map(linear));
        assert_eq!(closed(&steps), Knee::NotReached { between: (2.0, 4.0), rise: 1.0 });
        assert_eq!(open(&steps, None), Knee::NotReached { between: (2.0, 4.0), rise: 1.0 });
        assert_eq!(closed(&steps[..2]), Knee::TooFew(2));
        assert_eq!(open(&[], Some(1.0)), Knee::TooFew(0));
        let full = |load: f64| Step { load, throughput: 2.0, latency: load / 2.0 };
        assert_eq!(open(&single([1.0, 2.0, 4.0].map(full)), None), Knee::Before(1.0));
        assert_eq!(closed(&single([1.0, 2.0, 4.0].map(full))), Knee::Before(1.0));
    }

    #[test]
    fn a_load_that_is_not_met_ends_the_curve() {
        let linear = |load: f64| Step { load, throughput: load, latency: 0.5 };
        let knee = open(&single([1.0, 2.0].map(linear)), Some(4.0));
        let range = Range { low: Some(1.0), high: Some(4.0), basis: Basis::Neighbours };
        assert_eq!(knee, Knee::At { load: 2.0, between: (1.0, 4.0), range });
    }

    #[test]
    fn the_ends_of_a_range_are_the_loads_themselves() {
        // The mean of three times 28.4 is 28.399999999999995.
        let at = |load: f64, latency: f64| vec![Step { load, throughput: load.min(26.0), latency }; 3];
        let knee = open(&[at(20.0, 0.5), at(25.4, 0.5), at(28.4, 2.0)], None);
        assert!(matches!(knee, Knee::At { between: (20.0, 28.4), .. }), "{knee:?}");
    }

    #[test]
    fn no_knee_lies_outside_of_what_was_measured() {
        // If repeats scatter by a factor of ten, no load between 1 and 4 is excluded.
        let at =
            |load: f64, by: f64| Step { load, throughput: load.min(2.0) * by, latency: (load / 2.0).max(1.0) * by };
        let wild: Vec<Vec<Step>> = [1.0, 2.0, 4.0].map(|load| vec![at(load, 0.3), at(load, 1.7)]).into();
        let Knee::At { load, range, .. } = closed(&wild) else { panic!("{:?}", closed(&wild)) };
        assert!((1.0..=4.0).contains(&load), "{load}");
        assert_eq!(range, Range { low: None, high: None, basis: Basis::Repeats });
        // The lightest load was slower than the heaviest, so the bounds meet at 5, while the highest
        // measured load was 4.
        let slow = |load: f64, latency: f64| Step { load, throughput: 10.0, latency };
        let steps = single([slow(1.0, 0.5), slow(2.0, 0.3), slow(4.0, 0.4)]);
        assert_eq!(closed(&steps), Knee::Beyond { meet: 5.0, heaviest: 4.0 });
        // If the knee is at a measured load, the interval spans the adjacent loads.
        let exact = |load: f64| Step { load, throughput: load.min(4.0), latency: (load / 4.0).max(1.0) };
        let Knee::At { load, between, .. } = closed(&single([1.0, 2.0, 4.0, 8.0].map(exact))) else {
            panic!("no knee")
        };
        assert_eq!((load, between), (4.0, (2.0, 8.0)));
    }

    /// Returns runs whose latency and throughput scatter by this much around the known curve.
    fn scattered(known: &[Step], runs: usize, by: f64, rng: &mut ChaCha8Rng) -> Vec<Vec<Step>> {
        let mut near = |value: f64| {
            let normal = (0..12).map(|_| rng.random::<f64>() - 0.5).sum::<f64>();
            value * (by * normal).exp()
        };
        let mut run = |step: &Step| Step { throughput: near(step.throughput), latency: near(step.latency), ..*step };
        known.iter().map(|step| (0..runs).map(|_| run(step)).collect()).collect()
    }

    #[test]
    fn intervals_over_repeats_cover_the_knee() {
        const CASES: usize = 300;
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let open_loop: Vec<Step> = ladder(0.1, 0.9, 0.1).map(|load| one_server(1.0, load)).collect();
        let at = |load: f64| Step { load, throughput: load.min(6.0) / 0.5, latency: 0.5 * (load / 6.0).max(1.0) };
        let closed_loop: Vec<Step> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(at).into();
        for runs in [2, 3, 5] {
            let (mut missed, mut found) = ([0, 0], [0, 0]);
            for _ in 0..CASES {
                let knees = [
                    (open(&scattered(&open_loop, runs, 0.1, &mut rng), None), 0.5),
                    (closed(&scattered(&closed_loop, runs, 0.03, &mut rng)), 6.0),
                ];
                for (which, (knee, known)) in knees.into_iter().enumerate() {
                    let Knee::At { range, .. } = knee else { continue };
                    assert_eq!(range.basis, Basis::Repeats);
                    found[which] += 1;
                    let is_in = range.low.is_none_or(|low| low <= known) && range.high.is_none_or(|high| known <= high);
                    missed[which] += usize::from(!is_in);
                }
            }
            assert!(found.iter().all(|found| *found > CASES / 2), "{runs} runs: {found:?}");
            assert!(missed.iter().zip(found).all(|(missed, found)| missed * 20 <= found), "{runs} runs: {missed:?}");
        }
    }
}
