//! The latencies of the first request after a pause, which are reported separately.

use crate::rows::{Facts, Measured};

use super::request::Metric;
use super::window;

/// Latencies of the first request of a run that began with a pause, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IdleStart {
    /// Time to first token from sending. `None` if there was no pause, if the request failed, or if
    /// it was not alone because another request was sent before its first token.
    pub ttft: Option<f64>,
    /// End-to-end latency from sending. `None` under the same conditions as `ttft`, but the request must be
    /// alone until its last token.
    pub e2e: Option<f64>,
}

impl IdleStart {
    /// Computes the latencies of the run's first request, regardless of its phase.
    pub fn of(rows: &[Measured], facts: &Facts) -> IdleStart {
        let (Some(_), Some(first)) = (facts.idle_ns, rows.iter().find(|row| row.request == 0)) else {
            return IdleStart::default();
        };
        let second = rows.iter().filter(|row| row.request != 0).filter_map(|row| row.sent_ns()).min();
        let alone_until = |end: Option<u64>| end.is_some_and(|end| second.is_none_or(|second| end <= second));
        let value = |metric| window::request(first, facts).observe(metric).value().filter(|_| first.outcome.is_ok());
        IdleStart {
            ttft: value(Metric::Ttft).filter(|_| alone_until(first.first_token_ns())),
            e2e: value(Metric::E2e).filter(|_| alone_until(first.last_token_ns().or(first.done_ns()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, fail, record};
    use crate::rows::{Outcome, Record};

    const MS: u64 = 1_000_000;

    /// Returns a request of three tokens, the first after 20 ms, the last after 40 ms.
    fn request(number: u64, at: u64) -> Record {
        let mut record = record(at, at, at + 20 * MS, vec![10 * MS; 2], Run::default().make().1.windows);
        record.row.request = number;
        record
    }

    fn of(records: &[Record], idle_ns: Option<u64>) -> IdleStart {
        let rows: Vec<Measured> = records.iter().map(|record| Measured::from(&record.row)).collect();
        IdleStart::of(&rows, &Facts { idle_ns, ..Run::default().make().1 })
    }

    #[test]
    fn a_first_request_that_was_alone_is_a_result() {
        let start = |second| of(&[request(1, second), request(0, 0)], Some(1));
        assert_eq!(start(50 * MS), IdleStart { ttft: Some(20.0), e2e: Some(40.0) });
        assert_eq!(start(30 * MS), IdleStart { ttft: Some(20.0), e2e: None });
        assert_eq!(start(10 * MS), IdleStart::default());
    }

    #[test]
    fn without_a_pause_or_an_answer_there_is_none() {
        assert_eq!(of(&[request(0, 0)], None), IdleStart::default());
        let mut failed = request(0, 0);
        fail(&mut failed, Outcome::Reset, MS);
        assert_eq!(of(&[failed], Some(1)), IdleStart::default());
        assert_eq!(of(&[], Some(1)), IdleStart::default());
    }
}
