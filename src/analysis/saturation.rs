//! Whether a server kept up with what came to it: from the growth of what is in flight over the window of an open loop.
//!
//! Model: a server that keeps up has a queue that comes back to where it was; one that does not has a queue that is a random walk
//! upwards. The growth over the window is tested by the increments of its twentieths: of a random walk they are independent, so
//! Student's t is exact there, and of a queue that comes back they cancel out, so the test alarms less often than its level.
//! "Kept up" takes more than no growth shown: what is in flight must have been seen to come back ([`super::series::swings`]).

use super::flight::Flight;
use super::series::{PARTS, mean, swings, variance};
use super::student;

/// What an open loop says of its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// What came was served as it came.
    KeptUp,
    /// More came than was served: what is in flight grew all the time.
    Saturated,
    /// The window is too short to tell.
    NotShown,
}

impl State {
    /// The name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            State::KeptUp => "kept_up",
            State::Saturated => "saturated",
            State::NotShown => "not_shown",
        }
    }
}

/// Parts of the window whose increments are compared.
const STEPS: usize = 20;
/// Arrivals below which nothing is said.
pub const FEWEST: u64 = 50;
/// Swings of what is in flight that show that it comes back.
pub const SWINGS: u32 = 16;
/// Student's t of 19 degrees of freedom, one-sided: at 5 %, what still counts as no growth; at 0.5 %, growth.
const GROWS: f64 = 1.729;
const RUNS_AWAY: f64 = 2.861;

/// What the decision rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Requests that were wanted in the window.
    pub arrived: u64,
    /// Length of the window in seconds.
    pub seconds: f64,
    /// Swings of what is in flight.
    pub swings: u32,
    /// What is in flight at the end less what was at the begin.
    pub growth: f64,
    /// Standard error of the growth.
    pub error: f64,
}

impl Evidence {
    /// Of a window; none where it has no length.
    pub fn of(flight: &Flight) -> Option<Evidence> {
        let levels = flight.levels(STEPS);
        let steps: Vec<f64> = levels.windows(2).map(|two| two[1] - two[0]).collect();
        (!steps.is_empty()).then(|| Evidence {
            arrived: flight.arrived(),
            seconds: flight.seconds(),
            swings: swings(&flight.averages(PARTS)),
            growth: mean(&steps) * STEPS as f64,
            error: (variance(&steps) * STEPS as f64).sqrt(),
        })
    }

    /// The growth in units of its standard error.
    fn t(&self) -> f64 {
        match (self.error > 0.0, self.growth > 0.0) {
            (true, _) => self.growth / self.error,
            (false, true) => f64::INFINITY,
            (false, false) => 0.0,
        }
    }

    /// What it says.
    pub fn state(&self) -> State {
        if self.arrived < FEWEST {
            State::NotShown
        } else if self.t() > RUNS_AWAY {
            State::Saturated
        } else if self.error == 0.0 || (self.swings >= SWINGS && self.t() < GROWS) {
            // What never changes has been seen to stay where it is.
            State::KeptUp
        } else {
            State::NotShown
        }
    }

    /// Requests per second that really came.
    pub fn rate(&self) -> f64 {
        self.arrived as f64 / self.seconds
    }

    /// Requests per second by which what is in flight grew, and half its 95 % interval.
    pub fn growth_rate(&self) -> (f64, f64) {
        let half = student::critical(0.05, STEPS as f64 - 1.0) * self.error;
        (self.growth / self.seconds, half / self.seconds)
    }

    /// Requests per second that ended, with the ends of its 95 % interval, never below 0: what came is counted exactly, so the
    /// interval is that of the growth.
    pub fn completion_rate(&self) -> (f64, [f64; 2]) {
        let (growth, half) = self.growth_rate();
        let rate = self.rate() - growth;
        (rate, [(rate - half).max(0.0), rate + half])
    }

    /// Seconds of a window that would do to tell, as far as can be known: until so many requests came, and until what is in
    /// flight has swung often enough at the pace of this one.
    pub fn would_do(&self) -> f64 {
        let arrivals = FEWEST as f64 / self.arrived.max(1) as f64;
        let swings = f64::from(SWINGS) / f64::from(self.swings.max(1));
        self.seconds * arrivals.max(swings).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that come every 10 ms and take so many seconds, the k-th.
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
}
