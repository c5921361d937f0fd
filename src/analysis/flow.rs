//! Throughput of the measure window, regardless of which requests the tokens belong to.

use crate::rows::{Facts, Measured};

use super::gaps::Events;
use super::window::{contains, in_flight, members, request};

/// Rates over the window, regardless of which requests the counts belong to. All rates are `None` if
/// the window has no length.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flow {
    /// Length of the window in seconds.
    pub seconds: Option<f64>,
    /// Tokens per second, from the events inside the window.
    pub output_throughput: Option<f64>,
    /// Prompt tokens per second of requests whose first token arrived inside the window (without
    /// streaming: whose response arrived inside the window). `None` if the server did not report the
    /// prompt tokens of a completed request.
    pub prompt_throughput: Option<f64>,
    /// Requests per second that completed and whose last token arrived inside the window.
    pub request_throughput: Option<f64>,
    /// Requests per second that were scheduled inside the window; `None` for a closed loop, where arrivals
    /// follow completions.
    pub arrived_rate: Option<f64>,
    /// Requests per second that were sent inside the window.
    pub(crate) achieved_rate: Option<f64>,
    /// Average number of requests in flight over time.
    pub achieved_concurrency: Option<f64>,
}

impl Flow {
    /// Computes the rates from all requests of a run, of every phase.
    pub fn of(rows: &[Measured], events: &Events, facts: &Facts) -> Flow {
        let seconds = facts.windows.measure_secs();
        if seconds <= 0.0 || rows.is_empty() {
            return Flow::default();
        }
        let inside = |instant: Option<u64>| instant.is_some_and(|at| contains(&facts.windows, at));
        let completed = |row: &&Measured| row.outcome.is_ok();
        let answered = |row: &&Measured| inside(request(row, facts).answered_ns());
        let sent = rows.iter().filter(|row| inside(row.sent_ns())).count();
        let window = (facts.windows.measure_start_ns, facts.windows.measure_end_ns);
        Flow {
            seconds: Some(seconds),
            output_throughput: (!is_uncounted(rows, facts)).then_some(events.tokens_inside / seconds),
            prompt_throughput: prompt_tokens_inside(rows, facts).map(|tokens| tokens as f64 / seconds),
            request_throughput: Some(rows.iter().filter(completed).filter(answered).count() as f64 / seconds),
            arrived_rate: facts.open_loop.then(|| members(rows, facts).count() as f64 / seconds),
            achieved_rate: Some(sent as f64 / seconds),
            achieved_concurrency: in_flight(rows, facts, window, |row| row.sent_ns()),
        }
    }
}

/// Returns whether the tokens of a complete response of the window are unknown: the reported rate would then not be a
/// rate of tokens.
pub(super) fn is_uncounted(rows: &[Measured], facts: &Facts) -> bool {
    let inside = |instant: Option<u64>| instant.is_some_and(|at| contains(&facts.windows, at));
    let is_unknown = |row: &Measured| match facts.stream {
        true => row.tokens_unknown.is_some() && inside(row.last_token_ns()),
        false => row.events == 0 && row.output_tokens().is_none() && inside(row.done_ns()),
    };
    rows.iter().any(|row| row.outcome.is_ok() && is_unknown(row))
}

fn prompt_tokens_inside(rows: &[Measured], facts: &Facts) -> Option<u64> {
    let started = |row: &Measured| if facts.stream { row.first_token_ns() } else { row.done_ns() };
    let inside: Vec<&Measured> =
        rows.iter().filter(|row| started(row).is_some_and(|at| contains(&facts.windows, at))).collect();
    let uncounted = inside.iter().any(|row| row.outcome.is_ok() && row.prompt_tokens().is_none());
    (!uncounted).then(|| inside.iter().filter_map(|row| row.prompt_tokens()).map(u64::from).sum())
}
