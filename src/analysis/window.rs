//! The measure window: its requests, how they ended, and how many were in flight.

use crate::rows::{Facts, Measured, Outcome, Windows};

use super::request::Request;

/// Returns whether an instant lies in [measure start, measure end).
pub fn contains(windows: &Windows, instant: u64) -> bool {
    (windows.measure_start_ns..windows.measure_end_ns).contains(&instant)
}

/// Returns the requests that belong to the measurement: those that are scheduled inside the window.
pub fn members<'a>(rows: &'a [Measured], facts: &Facts) -> impl Iterator<Item = &'a Measured> {
    let windows = facts.windows;
    rows.iter().filter(move |row| contains(&windows, row.scheduled_ns))
}

/// Returns the requests that belong to the measurement, in scheduled order.
pub fn in_order<'a>(rows: &'a [Measured], facts: &Facts) -> Vec<&'a Measured> {
    let mut members: Vec<&Measured> = members(rows, facts).collect();
    members.sort_by_key(|row| row.scheduled_ns);
    members
}

/// Returns a row with the context needed to read its metrics.
pub fn request<'a>(row: &'a Measured, facts: &'a Facts) -> Request<'a> {
    Request { row, windows: &facts.windows, stream: facts.stream }
}

/// How the requests of the window ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of requests scheduled inside the window.
    pub requests: u64,
    /// Number of requests with a complete response.
    pub completed: u64,
    /// Number of requests without a complete response, including truncated ones.
    pub failed: u64,
    /// Number of requests still in flight at the end of drain.
    pub cut: u64,
}

impl Counts {
    /// Counts the window's requests.
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

    /// Returns the failed share of the window's requests; `None` without requests.
    pub fn error_share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.failed as f64 / self.requests as f64)
    }
}

/// Returns the time average of the number of active requests over `from..to`. A request is active
/// from the instant that `begin` returns until its end. `None` for an empty range.
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

/// Returns the streamed tokens per token event of the completed requests of the window; `None` without
/// events or token counts.
pub fn tokens_per_event(rows: &[Measured], facts: &Facts) -> Option<f64> {
    let (mut tokens, mut events) = (0u64, 0u64);
    for row in members(rows, facts).filter(|row| facts.stream && row.outcome.is_ok()) {
        tokens += u64::from(row.streamed_tokens()?);
        events += u64::from(row.events);
    }
    (events > 0).then(|| tokens as f64 / events as f64)
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
