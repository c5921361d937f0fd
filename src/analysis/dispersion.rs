//! How failures are distributed in the window of one run: how many there are, and how bursty they are.
//!
//! Failures are clustered: a server that restarts fails for two seconds and otherwise not at all. Two hundred
//! failures in one burst are one event, which predicts as much about the next run as a single failure. The
//! variance of a failure count is therefore the binomial variance times a *dispersion*. The dispersion is
//! estimated from how much the failed share differs between blocks of the run's requests: once from the means
//! of 15 batches, and once from the autocorrelation of 240 blocks (`series`). The larger estimate is used. It
//! is multiplied by 1 + 2 / √turnovers, because the dependence is uncertain if there are few turnovers
//! (blocks divided by the autocorrelation time). This factor and the number of batches were chosen by
//! simulation (`comparison::errors`).

use serde::{Deserialize, Serialize};

use super::series::{PARTS, autocorrelation_time, blocks, variance};
use super::window;
use crate::rows::{Facts, Measured};

/// Number of batches whose shares are compared.
pub(crate) const BATCHES: usize = 15;
/// Constant for the uncertainty of the dependence: the dispersion is multiplied by 1 + `UNSURE` /
/// √turnovers.
const UNSURE: f64 = 2.0;

/// The number of failed requests in a window, and the variance of this number relative to the variance for
/// independent failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureCount {
    /// Number of requests in the window.
    pub requests: u64,
    /// Number of requests that failed, including truncated ones.
    pub failed: u64,
    /// Variance of the count divided by the binomial variance, at least 1; `None` if no request failed
    /// or all requests failed.
    pub dispersion: Option<f64>,
}

impl FailureCount {
    /// Counts the requests of a run's window, in the order of their schedule.
    pub fn of(rows: &[Measured], facts: &Facts) -> FailureCount {
        let mut ends: Vec<(u64, bool)> =
            window::members(rows, facts).map(|row| (row.scheduled_ns, !row.outcome.is_ok())).collect();
        ends.sort_unstable_by_key(|(scheduled, _)| *scheduled);
        FailureCount::of_series(&ends.iter().map(|(_, failed)| *failed).collect::<Vec<_>>())
    }

    /// Counts the requests; `failed` states for each request, in scheduled order, whether it failed.
    pub(crate) fn of_series(failed: &[bool]) -> FailureCount {
        let n = failed.len() as f64;
        let count = failed.iter().filter(|failed| **failed).count() as u64;
        let share = count as f64 / n;
        let dispersion = (share > 0.0 && share < 1.0).then(|| {
            let values: Vec<f64> = failed.iter().map(|failed| f64::from(u8::from(*failed))).collect();
            let shares = blocks(&values, PARTS);
            let time = autocorrelation_time(&shares);
            let batches = blocks(&shares, BATCHES);
            let of_batches = variance(&batches) / batches.len() as f64;
            let of_all = variance(&shares) * time / shares.len() as f64;
            let unsure = 1.0 + UNSURE / (shares.len() as f64 / time).sqrt();
            (of_batches.max(of_all) * unsure * n / (share * (1.0 - share))).max(1.0)
        });
        FailureCount { requests: failed.len() as u64, failed: count, dispersion }
    }

    /// Returns the share that failed; 0 without requests.
    pub fn share(&self) -> f64 {
        self.failed as f64 / self.requests.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_one_event() {
        let scattered: Vec<bool> = (0..3_000).map(|at| at % 60 == 7).collect();
        let burst: Vec<bool> = (0..3_000).map(|at| (1_000..1_050).contains(&at)).collect();
        let [scattered, burst] = [scattered, burst].map(|series| FailureCount::of_series(&series));
        assert_eq!((scattered.failed, burst.failed), (50, 50));
        assert!(scattered.dispersion.unwrap() < 1.5, "{scattered:?}");
        // All failures are one event, so the standard deviation of the count is at least the count
        // itself.
        assert!(burst.dispersion.unwrap() > 50.0, "{burst:?}");
    }

    #[test]
    fn without_failures_there_is_no_dispersion() {
        assert_eq!(FailureCount::of_series(&[]), FailureCount::default());
        assert_eq!(FailureCount::of_series(&[false; 9]).dispersion, None);
        assert_eq!(FailureCount::of_series(&[true; 9]).dispersion, None);
    }
}
