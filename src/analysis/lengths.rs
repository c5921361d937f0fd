//! Breaks a run down by the length of its requests: requests of about the same length are measured as if
//! they were a separate run.

use std::collections::BTreeSet;

use crate::rows::{Facts, Measured, Replay};

use super::measure::{RunMetrics, measure_taken};
use super::window;

/// The kind of length by which requests are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The intended number of prompt tokens.
    Prompt,
    /// The requested number of output tokens.
    Output,
}

impl By {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            By::Prompt => "prompt_tokens",
            By::Output => "output_tokens",
        }
    }

    fn length(self, row: &Measured) -> u32 {
        match self {
            By::Prompt => row.intended_prompt_tokens,
            By::Output => row.requested_tokens,
        }
    }
}

/// Requests with 2^power to 2^(power + 1) − 1 tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// The kind of length by which the requests are grouped.
    pub by: By,
    power: u32,
}

impl Bucket {
    /// Returns the bucket of a request.
    fn of(by: By, row: &Measured) -> Bucket {
        Bucket { by, power: by.length(row).max(1).ilog2() }
    }

    /// Returns the first and last number of tokens: `256-511`.
    pub fn name(self) -> String {
        let first = 1u64 << self.power;
        format!("{first}-{}", 2 * first - 1)
    }
}

/// Prompts of the same intended length differ by a few tokens, because words cannot be split. Lengths
/// that differ by at most `SAME` tokens plus a sixteenth of the shortest count as one length.
const SAME: u32 = 4;

/// Returns the buckets of a run, in order: buckets of prompts if prompts differ in length, and buckets of
/// responses if responses differ in length.
pub fn buckets(rows: &[Measured], facts: &Facts) -> Vec<Bucket> {
    let of = |by: By| -> BTreeSet<Bucket> {
        let lengths = || window::members(rows, facts).map(|row| by.length(row));
        match lengths().min().zip(lengths().max()) {
            Some((least, most)) if most - least > SAME + least / 16 => {
                window::members(rows, facts).map(|row| Bucket::of(by, row)).collect()
            }
            _ => BTreeSet::new(),
        }
    };
    [By::Prompt, By::Output].into_iter().flat_map(of).collect()
}

/// Computes the metrics of one bucket: all metrics of a run except those that need all requests
/// together.
pub fn measure_bucket<R: Replay + ?Sized>(run: &R, bucket: Bucket, facts: &Facts) -> Result<RunMetrics, R::Error> {
    measure_taken(run, |row| Bucket::of(bucket.by, row) == bucket, facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::gaps::{Events, Gaps};
    use crate::analysis::measure::measure;
    use crate::analysis::synthetic::Run;
    use crate::rows::Records;

    /// Returns a run in which one third of the requests request 16 tokens, one third 100 tokens, and one
    /// third 1 000 tokens.
    fn varied() -> (Records, Facts) {
        let (mut records, facts) = Run::default().make();
        for (at, record) in records.iter_mut().enumerate() {
            record.row.requested_tokens = [16, 100, 1_000][at % 3];
            // The actual lengths of texts with an intended length of 256 tokens.
            record.row.intended_prompt_tokens = [254, 255, 256, 257][at % 4];
        }
        (records.into_iter().collect(), facts)
    }

    #[test]
    fn buckets_are_of_lengths_that_differ() {
        let (run, facts) = varied();
        let buckets = buckets(run.rows(), &facts);
        let shown: Vec<String> =
            buckets.iter().map(|bucket| format!("{} {}", bucket.by.name(), bucket.name())).collect();
        assert_eq!(shown, ["output_tokens 16-31", "output_tokens 64-127", "output_tokens 512-1023"]);
    }

    #[test]
    fn a_run_of_one_length_has_no_buckets() {
        let (records, facts) = Run::default().make();
        let run: Records = records.into_iter().collect();
        assert_eq!(buckets(run.rows(), &facts), []);
    }

    #[test]
    fn buckets_add_up_to_the_run() {
        let (run, facts) = varied();
        let events = Events::of(&run, &facts, &[]).unwrap();
        let gaps = Gaps::of(&run, &facts, &events).unwrap();
        let whole = measure(run.rows(), (&events, &gaps), &facts);
        let all = buckets(run.rows(), &facts).into_iter();
        let parts: Vec<RunMetrics> = all.map(|bucket| measure_bucket(&run, bucket, &facts).unwrap()).collect();
        let sum = |of: fn(&RunMetrics) -> u64| parts.iter().map(of).sum::<u64>();
        assert_eq!(sum(|part| part.counts.requests), whole.counts.requests);
        assert_eq!(sum(|part| part.ttft.n), whole.ttft.n);
        assert_eq!(sum(|part| part.itl.n), whole.itl.n);
        let throughput: f64 = parts.iter().filter_map(|part| part.flow.output_throughput).sum();
        let all = whole.flow.output_throughput.unwrap();
        assert!((throughput - all).abs() < 1e-6 * all, "{throughput} of {all}");
        assert!(parts.iter().all(|part| part.derived_server_throughput.is_none()));
    }
}
