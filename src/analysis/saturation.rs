//! Determines whether a server kept up with its arrivals, from the growth of requests in flight over the
//! window of an open loop.
//!
//! Model: the queue of a server that keeps up returns to its earlier level; the queue of a server that
//! does not keep up is a random walk upwards. The growth over the window is tested by its increments
//! over twentieths of the window. The increments of a random walk are independent, so Student's t is
//! exact for them. The increments of a queue that returns cancel out, so the test raises fewer alarms
//! than its level allows. "Kept up" requires more than the absence of growth: the requests in flight
//! must also have been observed to return ([`super::series::swings`]).
//!
//! Growth counts only if it is more than 1.5 times the growth that the rate explains.

use super::flight::Flight;
use super::series::{PARTS, mean, swings, variance};
use super::student;

/// The state of the server under the load of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// The server kept up: arrivals were served as they came.
    KeptUp,
    /// More requests arrived than were served, so the requests in flight kept growing.
    Saturated,
    /// The window is too short for a decision.
    NotShown,
}

impl State {
    /// Returns the name in tables and files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Number of parts of the window whose increments are compared, and the number of larger parts. If
/// service times depend on earlier ones, neighboring increments are alike and the growth looks more
/// certain than it is; larger parts are less affected.
const STEPS: usize = 20;
const LARGE_STEPS: usize = 10;
/// Minimum number of arrivals for a decision.
pub const FEWEST: u64 = 50;
/// Number of swings of the requests in flight that is needed to show that they return.
pub(crate) const SWINGS: u32 = 16;
/// One-sided critical values of Student's t with 19 degrees of freedom: at 5 %, growth below the value is
/// treated as no growth; at 0.5 %, growth above the value is shown.
const GROWS: f64 = 1.729;
const RUNS_AWAY: f64 = 2.861;
/// Critical value with 9 degrees of freedom, at 0.5 %.
const RUNS_AWAY_LARGE: f64 = 3.250;
/// With few arrivals, growth must be clearer by a factor of √(1 + `FEW` / arrivals). If each request
/// depends on tens of earlier requests, a window of a hundred requests contains only a few independent
/// ones (`docs/METRICS.md`, Dependence).
const FEW: f64 = 300.0;

/// The evidence on which the decision is based.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Number of runs that the evidence covers.
    pub runs: u64,
    /// Number of requests that were due in the window; with several runs, the mean.
    pub arrived: u64,
    /// Length of the window in seconds.
    pub seconds: f64,
    /// Number of swings of the requests in flight.
    pub swings: u32,
    /// Requests in flight at the end minus requests in flight at the beginning.
    pub growth: f64,
    /// Standard error of the growth.
    pub error: f64,
    /// Standard error of the growth, estimated from fewer and larger parts of the window.
    pub(crate) error_large: f64,
    /// Growth that the rate profile explains; 0 if the rate is steady.
    pub(crate) explained: f64,
}

impl Evidence {
    /// Computes the evidence for a window; `None` if the window has no length.
    pub fn of(flight: &Flight) -> Option<Evidence> {
        Evidence::with(flight, variance)
    }

    /// Computes the evidence for a window, given the function that computes the variance of the increments.
    fn with(flight: &Flight, variance_of: fn(&[f64]) -> f64) -> Option<Evidence> {
        let steps = |count| -> Vec<f64> { flight.levels(count).windows(2).map(|two| two[1] - two[0]).collect() };
        let error = |steps: &[f64]| (variance_of(steps) * steps.len() as f64).sqrt();
        let (small, large) = (steps(STEPS), steps(LARGE_STEPS));
        (!small.is_empty()).then(|| Evidence {
            runs: 1,
            arrived: flight.arrived(),
            seconds: flight.seconds(),
            swings: swings(&flight.averages(PARTS)),
            growth: mean(&small) * STEPS as f64,
            error: error(&small),
            error_large: error(&large),
            explained: 0.0,
        })
    }

    /// Computes the evidence for a window whose rate a profile changes; `None` if the window has no
    /// length.
    ///
    /// If the rate rises beyond the server's capacity, the requests in flight grow faster and faster.
    /// The variation of the increments is then not just noise, so their variance is computed from the
    /// differences between consecutive increments.
    pub(crate) fn under_profile(flight: &Flight) -> Option<Evidence> {
        /// Factor by which latency may rise along with the load.
        const LATENCY: f64 = 1.5;
        let quarter = flight.seconds() / 4.0;
        // One is added so that an empty quarter can be a divisor.
        let wanted = |from: f64| {
            let inside = |(begin, _): &&(f64, f64)| (from..from + quarter).contains(begin);
            1.0 + flight.spans.iter().filter(inside).count() as f64
        };
        let rise = (wanted(flight.to - quarter) / wanted(flight.from)).max(1.0);
        let first = flight.averages(4).first().copied().unwrap_or(0.0);
        Some(Evidence { explained: (LATENCY * rise - 1.0) * first, ..Evidence::with(flight, variance_of_differences)? })
    }

    /// Combines the evidence of several runs of one load into the evidence of a single run with their means.
    /// Growths and their variances are added, and in at least half of the runs, the requests in flight must
    /// have been observed to return. `None` without runs.
    ///
    /// The model assumes that repeats are independent and measure the same server. If a server is slower
    /// in some repeats, the result is whether it kept up on average.
    pub fn together(runs: &[Evidence]) -> Option<Evidence> {
        if runs.is_empty() {
            return None;
        }
        let count = runs.len() as f64;
        let mean_of = |of: fn(&Evidence) -> f64| runs.iter().map(of).sum::<f64>() / count;
        let error_of = |of: fn(&Evidence) -> f64| (runs.iter().map(|run| of(run).powi(2)).sum::<f64>()).sqrt() / count;
        let mut swings: Vec<u32> = runs.iter().map(|run| run.swings).collect();
        swings.sort_unstable();
        Some(Evidence {
            runs: runs.iter().map(|run| run.runs).sum(),
            arrived: mean_of(|run| run.arrived as f64) as u64,
            seconds: mean_of(|run| run.seconds),
            swings: swings[(swings.len() - 1) / 2],
            growth: mean_of(|run| run.growth),
            error: error_of(|run| run.error),
            error_large: error_of(|run| run.error_large),
            explained: mean_of(|run| run.explained),
        })
    }

    /// Returns the growth that no profile explains, in standard errors.
    fn t(&self, error: f64) -> f64 {
        let growth = self.growth - self.explained;
        match (error > 0.0, growth > 0.0) {
            (true, _) => growth / error,
            (false, true) => f64::INFINITY,
            (false, false) => 0.0,
        }
    }

    /// Returns the growth relative to the growth that would show that the requests in flight grow
    /// without bound.
    fn runs_away(&self) -> f64 {
        let few = (1.0 + FEW / (self.runs * self.arrived).max(1) as f64).sqrt();
        (self.t(self.error) / (RUNS_AWAY * few)).min(self.t(self.error_large) / RUNS_AWAY_LARGE)
    }

    /// Returns the state of the server that follows from the evidence.
    pub fn state(&self) -> State {
        if self.arrived < FEWEST {
            State::NotShown
        } else if self.runs_away() > 1.0 {
            State::Saturated
        } else if self.error == 0.0 || (self.swings >= SWINGS && self.growth < GROWS * self.error) {
            // If the number of requests in flight is constant, the requests in flight are treated as observed
            // to return. A rise that a profile explains shows neither that the server kept up nor that it was
            // saturated.
            State::KeptUp
        } else {
            State::NotShown
        }
    }

    /// Returns the actual arrivals per second.
    pub fn rate(&self) -> f64 {
        self.arrived as f64 / self.seconds
    }

    /// Returns the growth of the requests in flight, per second, and half the width of its 95 %
    /// interval.
    pub(crate) fn growth_rate(&self) -> (f64, f64) {
        let half = student::critical(0.05, STEPS as f64 - 1.0) * self.error;
        (self.growth / self.seconds, half / self.seconds)
    }

    /// Returns the completion rate in requests per second, with the ends of its 95 % interval, which are
    /// never below 0. Arrivals are counted exactly, so the interval is as wide as that of the growth.
    pub fn completion_rate(&self) -> (f64, [f64; 2]) {
        let (growth, half) = self.growth_rate();
        let rate = self.rate() - growth;
        (rate, [(rate - half).max(0.0), rate + half])
    }

    /// Returns an estimate of the window, in seconds, that would suffice for a decision. It must be long
    /// enough for the minimum number of arrivals and for enough swings of the requests in flight at the
    /// current pace. If there were enough swings, it must be long enough to show growth at the current
    /// rate.
    pub fn would_do(&self) -> f64 {
        let arrivals = FEWEST as f64 / self.arrived.max(1) as f64;
        let swings = f64::from(SWINGS) / f64::from(self.swings.max(1));
        let is_between = self.state() == State::NotShown && self.t(self.error) >= GROWS;
        // Growth increases with the length of the window, and the standard error of a random walk
        // increases with its square root.
        let growth = if is_between { (1.0 / self.runs_away()).powi(2) } else { 1.0 };
        self.seconds * arrivals.max(swings).max(growth).max(1.0)
    }
}

/// Returns the variance of values whose mean may change slowly: half the mean square of the differences
/// between neighbors (von Neumann, "Distribution of the ratio of the mean square successive difference
/// to the variance", Annals of Mathematical Statistics 12, 1941).
fn variance_of_differences(values: &[f64]) -> f64 {
    let squares = values.windows(2).map(|two| (two[1] - two[0]).powi(2)).sum::<f64>();
    squares / (2.0 * values.len().saturating_sub(1).max(1) as f64)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Returns requests that arrive every 10 ms; a request that arrives after `at` seconds takes `takes(at)`
    /// seconds.
    fn flight(seconds: f64, takes: impl Fn(f64) -> f64) -> Flight {
        let begins = (0..(seconds * 100.0) as u32).map(|k| f64::from(k) / 100.0);
        Flight { from: 0.0, to: seconds, spans: begins.map(|at| (at, at + takes(at))).collect() }
    }

    #[test]
    fn a_queue_that_only_grows_is_saturated_and_one_that_comes_back_kept_up() {
        let grows = Evidence::of(&flight(10.0, |at| 0.1 + at / 5.0)).unwrap();
        assert_eq!(grows.state(), State::Saturated);
        let (growth, half) = grows.growth_rate();
        assert!(growth > half && (grows.completion_rate().0 + growth - grows.rate()).abs() < 1e-9);
        let waves = Evidence::of(&flight(10.0, |at| 0.2 + 0.1 * (at * 9.7).sin())).unwrap();
        assert_eq!(waves.state(), State::KeptUp, "{waves:?}");
        let short = Evidence::of(&flight(0.4, |_| 0.1)).unwrap();
        assert_eq!(short.state(), State::NotShown);
        assert!(short.would_do() > 0.4);
        assert_eq!(Evidence::of(&Flight::default()), None);
    }

    /// Simulates an initially empty queue with four servers and a service time of one second, under Poisson
    /// arrivals at `load` times the capacity. The window is the last 60 s of 66 s.
    fn queue(load: f64, rng: &mut ChaCha8Rng) -> Evidence {
        let (mut free, mut at, mut spans) = ([0.0f64; 4], 0.0, Vec::new());
        while at < 66.0 {
            at -= (1.0 - rng.random::<f64>()).ln() / (4.0 * load);
            let first = (0..4).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
            free[first] = free[first].max(at) + 1.0;
            spans.push((at, free[first]));
        }
        Evidence::of(&Flight { from: 6.0, to: 66.0, spans }).unwrap()
    }

    #[test]
    fn repeats_show_an_overload_that_one_run_does_not() {
        const CASES: usize = 200;
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut counts = |load: f64, state: State| {
            let (mut alone, mut together) = (0, 0);
            for _ in 0..CASES {
                let runs = [0; 3].map(|_| queue(load, &mut rng));
                alone += usize::from(runs[0].state() == state);
                together += usize::from(Evidence::together(&runs).unwrap().state() == state);
            }
            (alone, together)
        };
        let (alone, together) = counts(1.1, State::Saturated);
        println!("a load of 1.1 saturates {alone} runs and {together} threes of {CASES}");
        assert!(together > 2 * alone, "{alone} alone, {together} together");
        assert!(counts(1.1, State::KeptUp).1 * 50 <= CASES && counts(0.9, State::Saturated).1 * 50 <= CASES);
        assert!(counts(0.7, State::KeptUp).1 * 3 > 2 * CASES);
        let one = queue(0.7, &mut rng);
        let same = Evidence::together(&[one]).unwrap();
        assert_eq!((same.state(), same.swings, same.arrived), (one.state(), one.swings, one.arrived));
        assert_eq!(Evidence::together(&[]), None);
    }

    #[test]
    fn growth_that_a_profile_asks_for_shows_nothing() {
        // The rate rises steadily to ten times its initial value.
        let begins = || (0..1_000).map(|k| 10.0 * ((0.01 + 0.99 * f64::from(k) / 1_000.0).sqrt() - 0.1) / 0.9);
        let of = |takes: fn(f64) -> f64| {
            let spans = begins().map(|at| (at, at + takes(at))).collect();
            Flight { from: 0.0, to: 10.0, spans }
        };
        let served = of(|_| 0.2);
        assert_eq!(Evidence::of(&served).unwrap().state(), State::Saturated);
        assert_eq!(Evidence::under_profile(&served).unwrap().state(), State::NotShown);
        assert_eq!(Evidence::under_profile(&of(|at| 0.1 + at / 2.0)).unwrap().state(), State::Saturated);
    }
}
