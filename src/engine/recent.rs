//! The latest results of a run, for displays of its progress: how soon successful responses began, how fast
//! they continued, and the last failure.
//!
//! One task writes at the end of each request; other threads may read at any time. A value that is read
//! while it is being written may mix two requests. This is acceptable because the values are only
//! displayed, and no result depends on them.

use std::array;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::outcome_counts::OutcomeCounts;
use crate::rows::{Outcome, RequestRow};

/// Number of successful requests that are remembered.
const KEPT: usize = 256;
/// A failure that follows another one within this time (in nanoseconds) is not shown, because
/// thousands may occur in a second.
const BETWEEN_FAILURES: u64 = 100_000_000;

/// The times of a successful response, in nanoseconds; 0 if unknown.
#[derive(Debug, Default)]
struct Answer {
    ended: AtomicU64,
    ttft: AtomicU64,
    tpot: AtomicU64,
    late: AtomicU64,
}

/// Number and sum of the durations of one kind since the run's start.
#[derive(Debug, Default)]
pub struct Total {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Total {
    fn add(&self, nanos: u64) {
        self.count.fetch_add(1, Relaxed);
        self.nanos.fetch_add(nanos, Relaxed);
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Returns the sum of the durations, in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.nanos.load(Relaxed)
    }
}

/// The times of one successful response, in nanoseconds; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Time from the send to the first token.
    pub ttft: Option<u64>,
    /// Mean time per output token after the first.
    pub tpot: Option<u64>,
    /// How late the client sent the request: the time from the request's release to its send, without the
    /// time to open a connection.
    pub late: u64,
}

/// The latest results of a run.
#[derive(Debug)]
pub struct Recent {
    answers: [Answer; KEPT],
    written: AtomicUsize,
    failure: Mutex<Option<(u64, String)>>,
    /// Times to first token of all successful responses so far.
    pub ttft: Total,
    /// Times per output token of all successful responses so far.
    pub tpot: Total,
    /// Lateness of the client for all successful responses so far.
    pub late: Total,
    /// Number of requests by outcome.
    pub outcomes: OutcomeCounts,
}

/// Medians over the latest successful responses, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pace {
    /// Time from the send to the first token; `None` if there was no successful response, or if responses
    /// have no first token.
    pub ttft_ms: Option<f64>,
    /// Mean time per output token after the first; `None` if no response had two tokens.
    pub tpot_ms: Option<f64>,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            answers: array::from_fn(|_| Answer::default()),
            written: AtomicUsize::new(0),
            failure: Mutex::default(),
            ttft: Total::default(),
            tpot: Total::default(),
            late: Total::default(),
            outcomes: OutcomeCounts::default(),
        }
    }
}

impl Recent {
    /// Records the result of a request that has ended.
    pub(crate) fn take(&self, row: &RequestRow) {
        let ended = row.ended_ns.unwrap_or(row.scheduled_ns);
        self.outcomes.add(row.outcome);
        if !row.outcome.is_ok() {
            return self.failed(ended, row);
        }
        let Some((sent, first)) = row.sent_ns.zip(row.first_token_ns) else { return };
        let ttft = first.saturating_sub(sent);
        let between = row.last_token_ns.map(|last| last.saturating_sub(first));
        let further = u64::from(row.output_tokens.unwrap_or(row.events).saturating_sub(1));
        let tpot = between.and_then(|between| between.checked_div(further));
        let late = lateness(row, sent);
        self.ttft.add(ttft);
        tpot.into_iter().for_each(|tpot| self.tpot.add(tpot));
        self.late.add(late);
        let at = self.written.fetch_add(1, Relaxed) % KEPT;
        let answer = &self.answers[at];
        answer.ttft.store(ttft, Relaxed);
        answer.tpot.store(tpot.unwrap_or(0), Relaxed);
        answer.late.store(late, Relaxed);
        answer.ended.store(ended, Relaxed);
    }

    fn failed(&self, at: u64, row: &RequestRow) {
        // A request that was still in flight at the end of the run is not a failure.
        if row.outcome == Outcome::CutAtDrain {
            return;
        }
        let Ok(mut failure) = self.failure.try_lock() else { return };
        if failure.as_ref().is_none_or(|(before, _)| at.saturating_sub(*before) >= BETWEEN_FAILURES) {
            let outcome = row.outcome.to_string();
            let what = row.error.as_ref().map_or(outcome.clone(), |error| format!("{outcome}: {error}"));
            *failure = Some((at, what));
        }
    }

    /// Returns the times of the remembered successful responses that ended at `since` (in nanoseconds since
    /// the run's start) or later.
    pub fn times(&self, since: u64) -> Vec<Times> {
        let known = |time: &AtomicU64| Some(time.load(Relaxed)).filter(|time| *time > 0);
        let recent = self.answers.iter().filter(|answer| answer.ended.load(Relaxed) >= since.max(1));
        recent
            .map(|answer| Times {
                ttft: known(&answer.ttft),
                tpot: known(&answer.tpot),
                late: answer.late.load(Relaxed),
            })
            .collect()
    }

    /// Returns the medians over the remembered successful responses that ended at `since` (in nanoseconds
    /// since the run's start) or later.
    pub fn pace(&self, since: u64) -> Pace {
        let times = self.times(since);
        let median = |time: fn(&Times) -> Option<u64>| {
            let mut known: Vec<u64> = times.iter().filter_map(time).collect();
            let middle = known.len() / 2;
            (!known.is_empty()).then(|| *known.select_nth_unstable(middle).1 as f64 / 1e6)
        };
        Pace { ttft_ms: median(|times| times.ttft), tpot_ms: median(|times| times.tpot) }
    }

    /// Returns the last failure as text; `None` without failures.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().ok()?.as_ref().map(|(_, what)| what.clone())
    }
}

/// Returns the time from release to send without the time to open a connection, in nanoseconds (see
/// "lateness" in docs/METRICS.md).
fn lateness(row: &RequestRow, sent: u64) -> u64 {
    let connecting: u64 = [row.dns_ns, row.connect_ns, row.tls_ns].into_iter().flatten().sum();
    let released = row.released_ns.unwrap_or(row.scheduled_ns);
    sent.saturating_sub(released).saturating_sub(connecting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(at_ms: u64, ttft_ms: u64, tokens: u32) -> RequestRow {
        let ms = |ms: u64| Some(ms * 1_000_000);
        let last = at_ms + ttft_ms + 2 * u64::from(tokens - 1);
        RequestRow {
            sent_ns: ms(at_ms),
            first_token_ns: ms(at_ms + ttft_ms),
            last_token_ns: ms(last),
            ended_ns: ms(last),
            output_tokens: Some(tokens),
            outcome: Outcome::Ok,
            ..RequestRow::default()
        }
    }

    #[test]
    fn the_pace_is_that_of_the_latest_answers_alone() {
        let recent = Recent::default();
        assert_eq!(recent.pace(0), Pace::default());
        (0..1000).for_each(|at| recent.take(&ended(at, 50, 5)));
        (2000..2010).for_each(|at| recent.take(&ended(at, 10, 5)));
        assert_eq!(recent.pace(1_900_000_000), Pace { ttft_ms: Some(10.0), tpot_ms: Some(2.0) });
        assert_eq!(recent.pace(0).ttft_ms, Some(50.0));
        assert_eq!(recent.pace(9_000_000_000), Pace::default());
    }

    #[test]
    fn one_token_has_no_pace_behind_it() {
        let recent = Recent::default();
        recent.take(&ended(5, 20, 1));
        assert_eq!(recent.pace(0), Pace { ttft_ms: Some(20.0), tpot_ms: None });
    }

    #[test]
    fn the_last_failure_is_told_and_not_each_of_thousands() {
        let recent = Recent::default();
        assert_eq!(recent.failure(), None);
        let failed = |at_ms: u64, error: &str| RequestRow {
            ended_ns: Some(at_ms * 1_000_000),
            outcome: Outcome::Http(503),
            error: Some(error.to_owned()),
            ..RequestRow::default()
        };
        recent.take(&failed(1000, "overloaded"));
        recent.take(&failed(1001, "too soon"));
        assert_eq!(recent.failure().as_deref(), Some("http_503: overloaded"));
        recent.take(&failed(2000, "later"));
        assert_eq!(recent.failure().as_deref(), Some("http_503: later"));
        let cut = RequestRow { outcome: Outcome::CutAtDrain, ..failed(3000, "cut") };
        recent.take(&cut);
        assert_eq!(recent.failure().as_deref(), Some("http_503: later"));
    }
}
