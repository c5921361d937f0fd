//! The measure window: who belongs to it, what flowed through it, how much was in flight.

use crate::rows::{Facts, Measured, Outcome, Windows};

use super::gaps::Events;
use super::request::Request;

/// Whether an instant lies in [measure start, measure end).
pub fn contains(windows: &Windows, instant: u64) -> bool {
    (windows.measure_start_ns..windows.measure_end_ns).contains(&instant)
}

/// The requests that belong to the measurement: those scheduled inside the window.
pub fn members<'a>(rows: &'a [Measured], facts: &Facts) -> impl Iterator<Item = &'a Measured> {
    let windows = facts.windows;
    rows.iter().filter(move |row| contains(&windows, row.scheduled_ns))
}

/// The same in the order of the schedule.
pub fn in_order<'a>(rows: &'a [Measured], facts: &Facts) -> Vec<&'a Measured> {
    let mut members: Vec<&Measured> = members(rows, facts).collect();
    members.sort_by_key(|row| row.scheduled_ns);
    members
}

/// A row with what it takes to read its metrics.
pub fn request<'a>(row: &'a Measured, facts: &'a Facts) -> Request<'a> {
    Request { row, windows: &facts.windows, stream: facts.stream }
}

/// How the requests of the window ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests scheduled inside the window.
    pub requests: u64,
    /// Those with a whole answer.
    pub completed: u64,
    /// Those without, cut ones counted.
    pub failed: u64,
    /// Those still under way at the end of drain.
    pub cut: u64,
}

impl Counts {
    /// Of the window's requests.
    pub fn of(rows: &[Measured], facts: &Facts) -> Counts {
        let mut counts = Counts::default();
        for row in members(rows, facts) {
            counts.requests += 1;
            counts.completed += u64::from(row.outcome.is_ok());
            counts.cut += u64::from(row.outcome == Outcome::CutAtDrain);
        }
        counts.failed = counts.requests - counts.completed;
        counts
    }

    /// Failed share of the window's requests; null without requests.
    pub fn error_share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.failed as f64 / self.requests as f64)
    }
}

/// Rates over the window, whichever request what they count belongs to. All null where the window has no length.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flow {
    /// Length of the window in seconds.
    pub seconds: Option<f64>,
    /// Tokens of events inside the window per second.
    pub output_throughput: Option<f64>,
    /// Prompt tokens of requests whose first token fell inside the window (not streaming: whose answer did), per second.
    /// Null where the server did not count the prompt of a completed one.
    pub prompt_throughput: Option<f64>,
    /// Completed requests whose last token fell inside the window, per second.
    pub request_throughput: Option<f64>,
    /// Requests scheduled inside the window, per second; null of a closed loop, where what comes is what was done.
    pub arrived_rate: Option<f64>,
    /// Requests sent inside the window, per second.
    pub achieved_rate: Option<f64>,
    /// Time average of requests in flight.
    pub achieved_concurrency: Option<f64>,
}

impl Flow {
    /// Of all requests of a run, of every phase.
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

/// Whether an answer of the window came whole and nobody counted its tokens: then less would be told than came.
fn is_uncounted(rows: &[Measured], facts: &Facts) -> bool {
    let inside = |row: &Measured| row.done_ns().is_some_and(|at| contains(&facts.windows, at));
    let uncounted = |row: &Measured| row.outcome.is_ok() && row.events == 0 && row.output_tokens().is_none();
    !facts.stream && rows.iter().any(|row| uncounted(row) && inside(row))
}

fn prompt_tokens_inside(rows: &[Measured], facts: &Facts) -> Option<u64> {
    let started = |row: &Measured| if facts.stream { row.first_token_ns() } else { row.done_ns() };
    let inside: Vec<&Measured> =
        rows.iter().filter(|row| started(row).is_some_and(|at| contains(&facts.windows, at))).collect();
    let uncounted = inside.iter().any(|row| row.outcome.is_ok() && row.prompt_tokens().is_none());
    (!uncounted).then(|| inside.iter().filter_map(|row| row.prompt_tokens()).map(u64::from).sum())
}

/// Time average over `from..to` of requests between the instant that `begin` names and their end; null for no time.
pub fn in_flight(
    rows: &[Measured],
    facts: &Facts,
    (from, to): (u64, u64),
    begin: impl Fn(&Measured) -> Option<u64>,
) -> Option<f64> {
    let overlap = |row: &Measured| {
        let start = begin(row)?.max(from);
        Some(request(row, facts).end_ns().min(to).saturating_sub(start))
    };
    let total: u128 = rows.iter().filter_map(overlap).map(u128::from).sum();
    (to > from).then(|| total as f64 / (to - from) as f64)
}

/// Output tokens per token event of the completed requests of the window; null without events or without a count.
pub fn tokens_per_event(rows: &[Measured], facts: &Facts) -> Option<f64> {
    let (mut tokens, mut events) = (0u64, 0u64);
    for row in members(rows, facts).filter(|row| facts.stream && row.outcome.is_ok()) {
        tokens += u64::from(row.output_tokens()?);
        events += u64::from(row.events);
    }
    (events > 0).then(|| tokens as f64 / events as f64)
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
