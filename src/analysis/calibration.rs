//! The generator's own error: what its rows say against the log of the mock that answered, request by request.
//!
//! Both sides stamp on one machine's monotonic clock, so the difference of two spans is an error of one of them, and the
//! server's span is the one that happened. METRICS, "Calibration", defines every figure.

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

/// Above this, a generator's error is part of the result: in milliseconds, at p99.
pub const BOUND_MS: f64 = 1.0;
/// Two loads whose measured rates differ by no more than this share are equally heavy: rates of short windows wander.
const SAME: f64 = 1.05;

/// What the mock's log says of one request. Instants are nanoseconds on the monotonic clock; none: never happened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ServerLine {
    request_id: Option<String>,
    /// The request arrived.
    pub arrival_ns: Option<u64>,
    /// Who stamped the arrival; logs that do not say were stamped by the mock's own clock.
    arrival_stamp: Option<String>,
    /// Just before the write call that carried the first token.
    pub first_write_ns: Option<u64>,
    /// Just before the write call that carried the last token.
    pub last_write_ns: Option<u64>,
}

/// The lines of a log by number of request.
pub(crate) type ServerLog = BTreeMap<u64, ServerLine>;

/// A log that cannot be matched with rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// A line that is none.
    #[error("line {line} of the mock's log is damaged: {reason}")]
    Damaged {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// One request, two lines.
    #[error("the mock saw request {0} twice")]
    Twice(u64),
}

/// The lines of `log` (JSON lines) whose `x-request-id` is `<prefix>-<request>`; others, such as a probe's, are left out.
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

/// How one error is distributed, in milliseconds. Percentiles are null below METRICS' sample sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Requests that both sides know it of.
    pub n: u64,
    /// Mean with its sign: above zero where the generator reports more than happened. Null without requests.
    pub mean_ms: Option<f64>,
    /// Median of the magnitude.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the magnitude.
    pub p99_ms: Option<f64>,
    /// Largest magnitude.
    pub max_ms: Option<f64>,
}

impl Spread {
    /// Of signed values in milliseconds.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        let values: Vec<f64> = values.collect();
        // Not `sum`: over nothing that is -0.
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

    /// What is judged: the 99th percentile, or the largest where there are too few requests for one.
    pub fn tail_ms(&self) -> Option<f64> {
        self.p99_ms.or(self.max_ms)
    }

    /// Whether its tail is below [`BOUND_MS`]; nothing measured is nothing above.
    fn is_small(&self) -> bool {
        self.tail_ms().is_none_or(|tail| tail < BOUND_MS)
    }
}

/// The generator's errors at one load. Requests are those of the measure window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    /// Requests scheduled inside the window.
    pub requests: u64,
    /// Of these, failed or cut.
    pub failed: u64,
    /// What most of these say of their failure. None where none failed.
    #[serde(default)]
    pub failure: Option<String>,
    /// Rows of any phase that were sent and that the server never saw.
    pub unseen: u64,
    /// Lines of the server's log without a row.
    pub unknown: u64,
    /// (first_token − sent) − (first write − arrival).
    pub ttft: Spread,
    /// (last_token − first_token) − (last write − first write), of whole answers of several events.
    pub itl: Spread,
    /// The row's lateness − the lateness that the server saw.
    pub lateness: Spread,
    /// Lateness as the server saw it: arrival − released − connecting.
    pub late: Spread,
    /// How much later than it should the mock wrote its first token: no error of the generator, but a sign of a machine
    /// that is short of time.
    pub server_delay: Spread,
    /// Share of gaps between token events that the rows show as 0: events that came in one read. Null without gaps, or
    /// where the mock pauses for none.
    pub merged: Option<f64>,
}

/// What the mock was told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MockPace {
    /// Time from an arrival to the first token.
    pub ttft: Nanos,
    /// Time between tokens.
    pub itl: Nanos,
}

impl Errors {
    /// Of one run against the mock.
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
            // Told to write without a pause, the mock itself puts many events into one write.
            merged: merged(events).filter(|_| told.itl > Nanos::ZERO),
        }
    }

    /// Whether most requests failed: nothing is learned of the generator then.
    pub fn mostly_failed(&self) -> bool {
        self.failed * 2 > self.requests
    }

    /// Whether the generator's own error stays below [`BOUND_MS`] here: that of TTFT, and how late requests arrived; every
    /// request was answered and both sides know of the same ones.
    pub fn holds(&self) -> bool {
        let complete = self.requests > 0 && self.failed + self.unseen + self.unknown == 0;
        complete && self.ttft.is_small() && self.late.is_small()
    }
}

/// One request as both sides saw it.
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

/// From one instant to another; negative where the order is reversed, never hidden.
fn millis(to: u64, from: u64) -> f64 {
    (i128::from(to) - i128::from(from)) as f64 / 1e6
}

/// The most frequent failure of the window's requests: its outcome and what the row says of it.
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

/// How hard a load is for a generator, whatever it was declared as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pressure {
    /// Time average of requests in flight over the window.
    pub in_flight: f64,
    /// Requests sent per second of the window.
    pub requests_per_second: f64,
    /// Token events received per second of the window.
    pub events_per_second: f64,
}

impl Pressure {
    /// So many times as hard in every respect.
    pub fn times(self, factor: f64) -> Pressure {
        let Pressure { in_flight, requests_per_second, events_per_second } = self;
        Pressure {
            in_flight: in_flight * factor,
            requests_per_second: requests_per_second * factor,
            events_per_second: events_per_second * factor,
        }
    }

    /// Of a run's rows; null where the window has no length or the run no rows.
    pub fn of(rows: &[Measured], events: &Events, facts: &Facts) -> Option<Pressure> {
        let flow = Flow::of(rows, events, facts);
        Some(Pressure {
            in_flight: flow.achieved_concurrency?,
            requests_per_second: flow.achieved_rate?,
            events_per_second: events.inside as f64 / facts.windows.measure_secs(),
        })
    }

    /// Of a measured run.
    pub fn of_metrics(metrics: &RunMetrics) -> Option<Pressure> {
        let per_event = metrics.tokens_per_event.unwrap_or(1.0);
        Some(Pressure {
            in_flight: metrics.flow.achieved_concurrency?,
            requests_per_second: metrics.flow.achieved_rate?,
            events_per_second: metrics.flow.output_throughput? / per_event,
        })
    }

    /// Whether `other` is at least as hard in every respect.
    pub fn is_within(&self, other: &Pressure) -> bool {
        let within = |ours: f64, theirs: f64| ours <= theirs * SAME;
        within(self.in_flight, other.in_flight)
            && within(self.requests_per_second, other.requests_per_second)
            && within(self.events_per_second, other.events_per_second)
    }
}

/// What a run cost its generator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// CPU time of the generator's process, every thread and phase of the run, per 1 000 requests, in seconds.
    pub cpu_s_per_1000_requests: Option<f64>,
    /// The same CPU time over the run's length: 1 is one core.
    pub cores: Option<f64>,
}

impl Cost {
    /// Of a run.
    pub fn of(rows: &[Measured], facts: &Facts) -> Cost {
        let cpu = facts.client_cpu_ns.map(|cpu| cpu as f64 / 1e9);
        let (requests, seconds) = (rows.len() as f64, facts.monotonic_ns as f64 / 1e9);
        let per = |share: f64| cpu.filter(|_| share > 0.0).map(|cpu| cpu / share);
        Cost { cpu_s_per_1000_requests: per(requests / 1e3), cores: per(seconds) }
    }
}

/// Who stamped what: how many requests of the window by the kernel, of all that say so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stamps {
    /// Answers that the kernel stamped as they came to the generator.
    pub client_kernel: u64,
    /// Answers in all.
    pub client: u64,
    /// Requests that the kernel stamped as they came to the mock.
    pub server_kernel: u64,
    /// Requests in all.
    pub server: u64,
}

impl Stamps {
    /// Of a run's window.
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
