//! The metrics of one request as defined in `docs/METRICS.md`, in milliseconds or tokens per second.
//!
//! A metric is a value, undefined, or failed: a failed or truncated request ranks above all other requests in
//! latency percentiles and is never excluded, while a metric that is null by definition provides no
//! information about speed.

use strum::{IntoStaticStr, VariantArray};

use crate::metrics;
use crate::rows::{Measured, Outcome, Windows};

use super::stats::Summary;
use super::worth::{Sample, Turns};

/// A metric with at most one value per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Metric {
    /// first_token − sent, ms.
    Ttft,
    /// first_token − scheduled, ms.
    TtftFromSchedule,
    /// first_output − sent, ms.
    Ttfo,
    /// last_token − sent (without streaming: done − sent), ms.
    E2e,
    /// last_token − scheduled (without streaming: done − scheduled), ms.
    E2eFromSchedule,
    /// (last_token − first_token) / (streamed tokens − 1), ms.
    Tpot,
    /// sent − released − connecting, ms.
    Lateness,
    /// DNS, TCP and TLS time of a connection opened for this request, ms.
    Connecting,
    /// released − scheduled, ms.
    CapWait,
    /// Streamed tokens / E2E latency, tokens per second. Without streaming, all output tokens count.
    UserThroughput,
    /// (Streamed tokens − 1) / (last_token − first_token), tokens per second.
    GenerationThroughput,
}

impl Metric {
    /// All metrics, in the order of the table of metrics.
    pub const ALL: &'static [Metric] = Metric::VARIANTS;

    /// Returns the metric's key in the table of metrics.
    pub fn key(self) -> &'static str {
        self.into()
    }

    /// Returns the metric's entry in the table of metrics.
    pub fn entry(self) -> &'static metrics::Metric {
        metrics::find(self.key()).expect("the table has every metric of a request")
    }
}

/// One metric of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observation {
    /// The metric's value.
    Value(f64),
    /// The request failed or was truncated, so it ranks worse than every value. The bound is the minimum
    /// time that it took, in ms; `None` for a rate.
    Failed(Option<f64>),
    /// Null by the metric's definition.
    Undefined,
}

impl Observation {
    /// Returns the value; `None` if failed or undefined.
    pub fn value(self) -> Option<f64> {
        match self {
            Observation::Value(value) => Some(value),
            Observation::Failed(_) | Observation::Undefined => None,
        }
    }
}

/// A request and its context: its row, the phase borders of its run, and whether responses were
/// streamed.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The row.
    pub row: &'a Measured,
    /// Borders of the run's phases, which are needed because a truncated request ends with the run.
    pub windows: &'a Windows,
    /// Whether responses were streamed; if not, TTFT, TTFO and TPOT do not exist.
    pub stream: bool,
}

impl Request<'_> {
    /// Returns the observation of a metric for this request.
    pub fn observe(&self, metric: Metric) -> Observation {
        use Metric::*;
        let value = match metric {
            Ttft | TtftFromSchedule | Ttfo | Tpot if !self.stream => return Observation::Undefined,
            Ttft | TtftFromSchedule | Ttfo | E2e | E2eFromSchedule | Tpot if !self.row.outcome.is_ok() => {
                return self.failed(metric);
            }
            Ttft => self.since_sent(self.row.first_token_ns()),
            TtftFromSchedule => self.since_scheduled(self.row.first_token_ns()),
            Ttfo => self.since_sent(self.row.first_output_ns()),
            E2e => self.since_sent(self.answered_ns()),
            E2eFromSchedule => self.since_scheduled(self.answered_ns()),
            Tpot => self.tpot(),
            UserThroughput | GenerationThroughput if !self.row.outcome.is_ok() => return self.failed(metric),
            Lateness => self.lateness(),
            Connecting => self.connecting(),
            CapWait => self.row.released_ns().map(|released| millis(released, self.row.scheduled_ns)),
            UserThroughput => self.user_throughput(),
            GenerationThroughput => self.generation_throughput(),
        };
        value.map_or(Observation::Undefined, Observation::Value)
    }

    /// Returns the observation of `metric` for a failed request, with the minimum time that the request took.
    fn failed(&self, metric: Metric) -> Observation {
        let end = Some(self.end_ns());
        let (start, end) = match metric {
            // A request for one token would have no time between tokens even if it had succeeded.
            Metric::Tpot if self.row.requested_tokens < 2 => return Observation::Undefined,
            Metric::GenerationThroughput if !self.stream || self.row.requested_tokens < 2 => {
                return Observation::Undefined;
            }
            Metric::Ttft => (self.row.sent_ns(), self.row.first_token_ns().or(end)),
            Metric::TtftFromSchedule => (Some(self.row.scheduled_ns), self.row.first_token_ns().or(end)),
            Metric::Ttfo => (self.row.sent_ns(), self.row.first_output_ns().or(end)),
            Metric::E2e => (self.row.sent_ns(), end),
            Metric::E2eFromSchedule => (Some(self.row.scheduled_ns), end),
            _ => (None, None),
        };
        Observation::Failed(start.zip(end).map(|(start, end)| millis(end, start)))
    }

    /// Returns when the whole response had arrived: the last token; without streaming, the end of the
    /// body.
    pub(crate) fn answered_ns(&self) -> Option<u64> {
        if self.stream { self.row.last_token_ns() } else { self.row.done_ns() }
    }

    /// Returns when the request stopped being in flight; if it never started, returns when it was due.
    pub fn end_ns(&self) -> u64 {
        match (self.row.ended_ns(), self.row.outcome) {
            (Some(ended), _) => ended,
            // The request waited until the end of the run.
            (None, Outcome::CutAtDrain) => self.windows.end_ns,
            (None, _) => self.row.scheduled_ns,
        }
    }

    fn since_sent(&self, instant: Option<u64>) -> Option<f64> {
        Some(millis(instant?, self.row.sent_ns()?))
    }

    fn since_scheduled(&self, instant: Option<u64>) -> Option<f64> {
        Some(millis(instant?, self.row.scheduled_ns))
    }

    /// Returns TPOT; `None` for fewer than two tokens or fewer than two events, because there is then no
    /// decode time to divide.
    fn tpot(&self) -> Option<f64> {
        let tokens = self.row.streamed_tokens().filter(|tokens| *tokens >= 2)?;
        let decode = millis(self.row.last_token_ns()?, self.row.first_token_ns()?);
        (self.row.events >= 2).then(|| decode / f64::from(tokens - 1))
    }

    /// Returns the lateness; `None` only if the request was never sent.
    fn lateness(&self) -> Option<f64> {
        let waited = millis(self.row.sent_ns()?, self.row.released_ns()?);
        Some(waited - self.connecting().unwrap_or(0.0))
    }

    fn connecting(&self) -> Option<f64> {
        self.row.connecting_ns().map(|nanos| nanos as f64 / 1e6)
    }

    fn user_throughput(&self) -> Option<f64> {
        let waited = self.since_sent(self.answered_ns()).filter(|millis| *millis > 0.0)?;
        let tokens = if self.stream { self.row.streamed_tokens() } else { self.row.output_tokens() };
        Some(f64::from(tokens?) / waited * 1e3)
    }

    /// Returns the inverse of TPOT, so the first token is not part of the time. `None` if TPOT is `None`, or
    /// if TPOT is 0 because all tokens arrived in one read.
    fn generation_throughput(&self) -> Option<f64> {
        let each = self.tpot().filter(|millis| self.stream && *millis > 0.0)?;
        Some(1e3 / each)
    }
}

/// Returns the milliseconds from `from` to `to`; negative if `to` is the earlier instant.
fn millis(to: u64, from: u64) -> f64 {
    (to as f64 - from as f64) / 1e6
}

impl Metric {
    /// Returns the turns of the queue that apply to the metric: those of the run, or none for the generator's
    /// own metrics, which the queue does not affect.
    fn turns(self, turns: Turns) -> Turns {
        match self {
            Metric::Lateness | Metric::Connecting => Turns::CLOSED,
            _ => turns,
        }
    }
}

/// Collects one metric of some requests, in scheduled order, and the largest known bound of a failure.
/// Rates are negated, so that worse values are larger for rates too.
pub fn sample<'a>(requests: impl Iterator<Item = Request<'a>>, metric: Metric, turns: Turns) -> (Sample, Option<f64>) {
    let sign = if metric.entry().is_rate() { -1.0 } else { 1.0 };
    let (mut values, mut bound) = (Vec::new(), None::<f64>);
    for request in requests {
        match request.observe(metric) {
            Observation::Value(value) => values.push(sign * value),
            Observation::Failed(known) => {
                values.push(f64::INFINITY);
                bound = bound.into_iter().chain(known).reduce(f64::max);
            }
            Observation::Undefined => {}
        }
    }
    (Sample::new(values, metric.turns(turns)), bound)
}

/// Returns the distribution of one metric over some requests, in scheduled order.
pub(crate) fn summarize<'a>(requests: impl Iterator<Item = Request<'a>>, metric: Metric, turns: Turns) -> Summary {
    let (sample, bound) = sample(requests, metric, turns);
    if !metric.entry().is_rate() {
        return Summary::of_sample(&sample, bound);
    }
    // If no response has the rate because no token count is available, failures do not have it either.
    match sample.rising().first().filter(|negative| negative.is_finite()) {
        Some(negative) => Summary::of_sample(&sample, bound).turned(Some(-negative)),
        None => Summary::of(Vec::new(), 0, None),
    }
}

/// Returns the token events of one request, each with its instant and tokens. An event counts as
/// streamed tokens / events, or as 1 if the streamed tokens are unknown. Without streaming, all tokens of a response
/// count at `done`.
pub fn token_events(row: &Measured, gaps: &[u64], stream: bool) -> impl Iterator<Item = (u64, f64)> {
    let events = gaps.len() as f64 + 1.0;
    let tokens = if stream { row.streamed_tokens() } else { row.output_tokens() };
    let tokens = tokens.map(f64::from);
    let first = if stream { row.first_token_ns() } else { row.done_ns().filter(|_| tokens.is_some()) };
    let each = if stream { tokens.map_or(1.0, |tokens| tokens / events) } else { tokens.unwrap_or(0.0) };
    let gaps = if stream { gaps } else { &[] };
    let instants = first.into_iter().flat_map(move |first| {
        let later = gaps.iter().scan(first, |at, gap| {
            *at = at.saturating_add(*gap);
            Some(*at)
        });
        std::iter::once(first).chain(later)
    });
    instants.map(move |at| (at, each))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
