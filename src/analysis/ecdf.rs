//! The distribution of a metric over the requests of a run: the share of requests at or below each
//! value. Failed requests rank above every value, so the share ends below 1 if some requests failed.

use crate::rows::{Facts, Measured};

use super::request::{Metric, Observation};
use super::window;

/// One step: the number of requests at or below a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The value, in the unit of the metric.
    pub value: f64,
    /// Number of requests at or below the value.
    pub rank: u64,
}

/// The distribution of one metric over the requests of one window, or of several windows together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ecdf {
    /// Number of requests that have the metric, including failures.
    pub n: u64,
    /// Number of failures among the requests, which rank above every value.
    pub failures: u64,
    /// Steps in rising order: at most [`MOST_STEPS`] exact order statistics, always including the
    /// smallest and the largest.
    pub steps: Vec<Step>,
}

/// Maximum number of steps of one distribution: half of them are spaced evenly over the requests, and
/// half are increasingly dense towards the slowest requests.
pub const MOST_STEPS: usize = 160;

/// The values of one metric over the requests of a window, or of several windows together.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    values: Vec<f64>,
    failures: u64,
}

impl Observed {
    /// Collects the values of a run. Supports only times, because failed requests would have to rank
    /// below every rate.
    pub fn of(rows: &[Measured], facts: &Facts, metric: Metric) -> Observed {
        let mut found = Observed::default();
        for row in window::members(rows, facts) {
            match window::request(row, facts).observe(metric) {
                Observation::Value(value) => found.values.push(value),
                Observation::Failed(_) => found.failures += 1,
                Observation::Undefined => {}
            }
        }
        found
    }

    /// Adds the values of another run.
    pub fn add(&mut self, other: &Observed) {
        self.values.extend(&other.values);
        self.failures += other.failures;
    }
}

impl Ecdf {
    /// Computes the distribution of a run.
    pub fn of(rows: &[Measured], facts: &Facts, metric: Metric) -> Ecdf {
        Observed::of(rows, facts, metric).into()
    }
}

impl From<Observed> for Ecdf {
    fn from(Observed { mut values, failures }: Observed) -> Ecdf {
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len() as u64 + failures;
        let step = |rank: u64| Step { value: values[rank as usize - 1], rank };
        Ecdf { n, failures, steps: ranks(values.len() as u64).into_iter().map(step).collect() }
    }
}

/// Returns the ranks (from 1) that are kept if there are this many values.
fn ranks(values: u64) -> Vec<u64> {
    if values <= MOST_STEPS as u64 {
        return (1..=values).collect();
    }
    let half = MOST_STEPS / 2;
    let share = |at: usize| at as f64 / (half - 1) as f64;
    let evenly = (0..half).map(|at| 1.0 + share(at) * (values - 1) as f64);
    // These ranks extend from the median to the largest value. From rank to rank, the number of values above
    // the rank falls by the same ratio.
    let above = (values / 2) as f64;
    let densely = (0..half).map(|at| values as f64 - above.powf(1.0 - share(at)) + 1.0);
    let mut ranks: Vec<u64> = evenly.chain(densely).map(|rank| (rank.round() as u64).clamp(1, values)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, fail};
    use crate::rows::{Outcome, Records, Replay};

    #[test]
    fn few_requests_are_all_there_and_failures_lie_above() {
        let (mut records, facts) = Run { seconds: 0.5, jitter: 0.0, ..Run::default() }.make();
        let first =
            records.iter().position(|record| window::contains(&facts.windows, record.row.scheduled_ns)).unwrap();
        fail(&mut records[first], Outcome::Http(503), 1_000_000);
        let run: Records = records.into_iter().collect();
        let found = Ecdf::of(run.rows(), &facts, Metric::Ttft);
        assert_eq!(found.failures, 1);
        assert!(found.n > 3 && found.n <= MOST_STEPS as u64, "{}", found.n);
        assert_eq!(found.steps.len() as u64, found.n - 1);
        assert!(found.steps.last().unwrap().rank < found.n, "the failure is above the slowest");
    }

    #[test]
    fn runs_together_have_the_requests_of_all_in_order() {
        let of = |values: &[f64], failures| Observed { values: values.to_vec(), failures };
        let mut together = of(&[3.0, 1.0], 1);
        together.add(&of(&[2.0], 2));
        let found = Ecdf::from(together);
        let steps: Vec<(f64, u64)> = found.steps.iter().map(|step| (step.value, step.rank)).collect();
        assert_eq!((found.n, found.failures, steps), (6, 3, vec![(1.0, 1), (2.0, 2), (3.0, 3)]));
    }

    #[test]
    fn many_requests_keep_both_ends_and_most_of_the_tail() {
        let kept = ranks(1_000_000);
        assert!(kept.len() <= MOST_STEPS, "{}", kept.len());
        assert_eq!((kept.first(), kept.last()), (Some(&1), Some(&1_000_000)));
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        let beyond_p999 = kept.iter().filter(|rank| **rank > 999_000).count();
        assert!(beyond_p999 > 20, "{beyond_p999} of the slowest thousandth");
        assert_eq!(ranks(0), [] as [u64; 0]);
        assert_eq!(ranks(1), [1]);
    }
}
