//! Measures the generator's own error by comparing its rows, request by request, with the log of the mock
//! server that responded.
//!
//! Both sides take timestamps from the same machine's monotonic clock. A difference between their spans is
//! therefore a measurement error; the server's span is taken as the true one. `docs/METRICS.md`, Calibration,
//! defines every figure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Percentile;
use crate::rows::{Facts, Measured, Stamp};
use crate::units::Nanos;

use super::flow::Flow;
use super::gaps::Events;
use super::measure::RunMetrics;
use super::request::Metric;
use super::stats::Summary;
use super::window;

/// The p99 of the generator's error, in milliseconds, above which the error distorts results.
pub const BOUND_MS: f64 = 1.0;
/// Tolerance for comparing loads: a load is heavier than another only if one of its measured rates exceeds
/// the other's by more than this factor. Rates measured in short windows fluctuate.
const SAME: f64 = 1.05;

/// The mock's log of one request. Instants are nanoseconds on the monotonic clock; `None` if the event never
/// happened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ServerLine {
    request_id: Option<String>,
    /// When the request arrived.
    pub arrival_ns: Option<u64>,
    /// The source of the arrival's timestamp; `None` in logs without this field, in which the mock took
    /// the timestamp from its own clock.
    arrival_stamp: Option<String>,
    /// The instant just before the write call that carried the first token.
    pub first_write_ns: Option<u64>,
    /// The instant just before the write call that carried the last token.
    pub last_write_ns: Option<u64>,
}

/// The lines of a log by request number.
pub(crate) type ServerLog = BTreeMap<u64, ServerLine>;

/// The reason why a log cannot be matched with rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// An invalid line.
    #[error("line {line} of the mock's log is damaged: {reason}")]
    Damaged {
        /// Line number, from 1.
        line: usize,
        /// The error.
        reason: String,
    },
    /// The log contains two lines for this request.
    #[error("request {0} is in the mock's log twice")]
    Twice(u64),
}

/// Reads the lines of `log` (JSON lines) whose `x-request-id` is `<prefix>-<request>`; skips other
/// lines, such as a probe's.
pub fn read_log(log: &str, prefix: &str) -> Result<ServerLog, LogError> {
    let mut lines = ServerLog::new();
    for (index, text) in log.lines().enumerate() {
        let line: ServerLine = serde_json::from_str(text)
            .map_err(|error| LogError::Damaged { line: index + 1, reason: error.to_string() })?;
        let number = |id: &str| id.strip_prefix(prefix)?.strip_prefix('-')?.parse::<u64>().ok();
        let Some(request) = line.request_id.as_deref().and_then(number) else { continue };
        if lines.insert(request, line).is_some() {
            return Err(LogError::Twice(request));
        }
    }
    Ok(lines)
}

/// The distribution of one error, in milliseconds. A percentile is null if there are fewer samples than
/// docs/METRICS.md requires for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Number of requests for which both the generator and the mock have the value.
    pub n: u64,
    /// Mean of the signed errors, positive if the generator reports more than the true value. Null without
    /// requests.
    pub mean_ms: Option<f64>,
    /// Median of the absolute errors.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the absolute errors.
    pub p99_ms: Option<f64>,
    /// Largest absolute error.
    pub max_ms: Option<f64>,
}

impl Spread {
    /// Computes the distribution from signed errors in milliseconds.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        let values: Vec<f64> = values.collect();
        // `sum` is not used, because it returns -0 for an empty iterator.
        let sum = values.iter().fold(0.0, |sum, value| sum + value);
        let mean = (!values.is_empty()).then(|| sum / values.len() as f64);
        let sizes = Summary::of(values.into_iter().map(f64::abs).collect(), 0, None);
        Spread {
            n: sizes.n,
            mean_ms: mean,
            p50_ms: sizes.percentile(Percentile::P50).exact(),
            p99_ms: sizes.percentile(Percentile::P99).exact(),
            max_ms: sizes.max.and_then(|max| max.exact()),
        }
    }

    /// Returns the judged value: the 99th percentile, or the largest if there are too few requests for
    /// one.
    pub fn tail_ms(&self) -> Option<f64> {
        self.p99_ms.or(self.max_ms)
    }

    /// Returns whether the tail of this distribution is below [`BOUND_MS`]. Returns true if there are no
    /// measurements.
    fn is_small(&self) -> bool {
        self.tail_ms().is_none_or(|tail| tail < BOUND_MS)
    }
}

/// The generator's errors at one load. Only requests of the measure window count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    /// Number of requests scheduled inside the window.
    pub requests: u64,
    /// Number of requests among `requests` that failed or were truncated.
    pub failed: u64,
    /// The most frequent failure message. Null if none failed.
    #[serde(default)]
    pub failure: Option<String>,
    /// Number of requests of any phase that were sent but never reached the server.
    pub unseen: u64,
    /// Number of lines in the server's log that have no row.
    pub unknown: u64,
    /// Error of TTFT: (first_token − sent) − (first write − arrival).
    pub ttft: Spread,
    /// Error of the time from the first token to the last: (last_token − first_token) − (last write − first
    /// write), for complete responses of several events.
    pub itl: Spread,
    /// The row's lateness minus the lateness at the server.
    pub lateness: Spread,
    /// Lateness at the server: arrival − released − connecting.
    pub late: Spread,
    /// How late the mock wrote its first token. This is not an error of the generator but a sign of an
    /// overloaded machine.
    pub server_delay: Spread,
    /// Share of gaps between token events that are 0 in the rows because the events arrived in the same read.
    /// Null without gaps, or if the mock does not pause between tokens.
    pub merged: Option<f64>,
}

/// The configured pace of the mock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MockPace {
    /// Time from an arrival to the first token.
    pub ttft: Nanos,
    /// Time between tokens.
    pub itl: Nanos,
}

impl Errors {
    /// Computes the errors of one run against the mock.
    pub fn of(rows: &[Measured], events: &Events, facts: &Facts, log: &ServerLog, told: MockPace) -> Errors {
        let counts = window::Counts::of(rows, facts);
        let sent = || rows.iter().filter(|row| row.sent_ns().is_some());
        let seen = sent().filter(|row| log.contains_key(&row.request)).count();
        let pairs: Vec<Pair> = window::members(rows, facts)
            .filter_map(|row| Some(Pair { row, facts, line: log.get(&row.request)? }))
            .collect();
        let spread = |value: &dyn Fn(&Pair) -> Option<f64>| Spread::of(pairs.iter().filter_map(value));
        Errors {
            requests: counts.requests,
            failed: counts.failed,
            failure: failure(rows, facts),
            unseen: (sent().count() - seen) as u64,
            unknown: (log.len() - seen) as u64,
            ttft: spread(&|pair| pair.ttft_error()),
            itl: spread(&|pair| pair.itl_error()),
            lateness: spread(&|pair| Some(pair.lateness()? - pair.late()?)),
            late: spread(&|pair| pair.late()),
            server_delay: spread(&|pair| Some(pair.server_ttft()? - told.ttft.millis())),
            // Without a configured pause, the mock itself puts many events into one write.
            merged: merged(events).filter(|_| told.itl > Nanos::ZERO),
        }
    }

    /// Returns whether most requests failed. Such a run shows nothing about the generator.
    pub fn mostly_failed(&self) -> bool {
        self.failed * 2 > self.requests
    }

    /// Returns whether the generator's own error stays below [`BOUND_MS`] at this load, both for TTFT and for
    /// the lateness of arrivals. Every request must have succeeded, and the generator and the mock must have
    /// recorded the same requests.
    pub fn holds(&self) -> bool {
        let complete = self.requests > 0 && self.failed + self.unseen + self.unknown == 0;
        complete && self.ttft.is_small() && self.late.is_small()
    }
}

/// One request as recorded by both sides.
struct Pair<'a> {
    row: &'a Measured,
    facts: &'a Facts,
    line: &'a ServerLine,
}

impl Pair<'_> {
    fn ttft_error(&self) -> Option<f64> {
        let ours = millis(self.row.first_token_ns()?, self.row.sent_ns()?);
        Some(ours - self.server_ttft()?).filter(|_| self.facts.stream)
    }

    fn server_ttft(&self) -> Option<f64> {
        Some(millis(self.line.first_write_ns?, self.line.arrival_ns?))
    }

    fn itl_error(&self) -> Option<f64> {
        let several = self.facts.stream && self.row.outcome.is_ok() && self.row.events >= 2;
        let ours = millis(self.row.last_token_ns()?, self.row.first_token_ns()?);
        let server = millis(self.line.last_write_ns?, self.line.first_write_ns?);
        several.then_some(ours - server)
    }

    fn lateness(&self) -> Option<f64> {
        window::request(self.row, self.facts).observe(Metric::Lateness).value()
    }

    fn late(&self) -> Option<f64> {
        let released = self.facts.start_monotonic_ns + self.row.released_ns()?;
        let connecting = window::request(self.row, self.facts).observe(Metric::Connecting).value();
        Some(millis(self.line.arrival_ns?, released) - connecting.unwrap_or(0.0))
    }
}

/// Returns the milliseconds from `from` to `to`; negative if `to` is the earlier instant.
fn millis(to: u64, from: u64) -> f64 {
    (i128::from(to) - i128::from(from)) as f64 / 1e6
}

/// Returns the outcome and message of the most frequent failure among the window's requests.
fn failure(rows: &[Measured], facts: &Facts) -> Option<String> {
    let mut said: BTreeMap<String, u64> = BTreeMap::new();
    for row in window::members(rows, facts).filter(|row| !row.outcome.is_ok()) {
        let text = row.error().map_or_else(|| row.outcome.to_string(), |error| format!("{}: {error}", row.outcome));
        *said.entry(text).or_default() += 1;
    }
    said.into_iter().max_by_key(|(_, n)| *n).map(|(text, _)| text)
}

fn merged(events: &Events) -> Option<f64> {
    (events.gaps() > 0).then(|| events.zeros as f64 / events.gaps() as f64)
}

/// How heavy a load is for a generator, regardless of how the load was declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pressure {
    /// Average number of requests in flight over the window.
    pub in_flight: f64,
    /// Requests sent per second of the window.
    pub requests_per_second: f64,
    /// Token events received per second of the window.
    pub events_per_second: f64,
}

impl Pressure {
    /// Returns a load that is `factor` times as heavy in every respect.
    pub fn times(self, factor: f64) -> Pressure {
        let Pressure { in_flight, requests_per_second, events_per_second } = self;
        Pressure {
            in_flight: in_flight * factor,
            requests_per_second: requests_per_second * factor,
            events_per_second: events_per_second * factor,
        }
    }

    /// Computes the pressure from a run's rows; `None` if the window has no length or the run has no rows.
    pub fn of(rows: &[Measured], events: &Events, facts: &Facts) -> Option<Pressure> {
        let flow = Flow::of(rows, events, facts);
        Some(Pressure {
            in_flight: flow.achieved_concurrency?,
            requests_per_second: flow.achieved_rate?,
            events_per_second: events.inside as f64 / facts.windows.measure_secs(),
        })
    }

    /// Computes the pressure from a run's metrics; `None` if a metric is missing.
    pub fn of_metrics(metrics: &RunMetrics) -> Option<Pressure> {
        let per_event = metrics.tokens_per_event.unwrap_or(1.0);
        Some(Pressure {
            in_flight: metrics.flow.achieved_concurrency?,
            requests_per_second: metrics.flow.achieved_rate?,
            events_per_second: metrics.flow.output_throughput? / per_event,
        })
    }

    /// Returns whether `other` is at least as heavy in every respect, within the tolerance `SAME`.
    pub fn is_within(&self, other: &Pressure) -> bool {
        let within = |ours: f64, theirs: f64| ours <= theirs * SAME;
        within(self.in_flight, other.in_flight)
            && within(self.requests_per_second, other.requests_per_second)
            && within(self.events_per_second, other.events_per_second)
    }
}

/// The CPU time that the generator used for a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// CPU seconds of the generator's process per 1 000 requests, over all threads and all phases of the run.
    pub cpu_s_per_1000_requests: Option<f64>,
    /// CPU time of the generator's process divided by the run's duration; 1 means one core.
    pub cores: Option<f64>,
}

impl Cost {
    /// Computes the cost of a run.
    pub fn of(rows: &[Measured], facts: &Facts) -> Cost {
        let cpu = facts.client_cpu_ns.map(|cpu| cpu as f64 / 1e9);
        let (requests, seconds) = (rows.len() as f64, facts.monotonic_ns as f64 / 1e9);
        let per = |share: f64| cpu.filter(|_| share > 0.0).map(|cpu| cpu / share);
        Cost { cpu_s_per_1000_requests: per(requests / 1e3), cores: per(seconds) }
    }
}

/// The sources of timestamps in the window: how many responses and requests have a timestamp from the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stamps {
    /// Number of responses that the kernel stamped on arrival at the generator.
    pub client_kernel: u64,
    /// Number of responses whose headers arrived at the generator.
    pub client: u64,
    /// Number of requests that the kernel stamped on arrival at the mock.
    pub server_kernel: u64,
    /// Number of requests in the mock's log.
    pub server: u64,
}

impl Stamps {
    /// Counts the requests of a run's window.
    pub fn of(rows: &[Measured], facts: &Facts, log: &ServerLog) -> Stamps {
        let answered = || window::members(rows, facts).filter(|row| row.answered);
        let lines = || window::members(rows, facts).filter_map(|row| log.get(&row.request));
        let by_kernel = |line: &&ServerLine| line.arrival_stamp.as_deref() == Some(Stamp::Kernel.name());
        Stamps {
            client_kernel: answered().filter(|row| row.stamp == Stamp::Kernel).count() as u64,
            client: answered().count() as u64,
            server_kernel: lines().filter(by_kernel).count() as u64,
            server: lines().count() as u64,
        }
    }
}

#[cfg(test)]
#[path = "calibration_tests.rs"]
mod tests;
