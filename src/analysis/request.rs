//! The metrics of one request, each as METRICS defines it, in milliseconds or tokens per second.
//!
//! A metric is a value, undefined, or failed: a failed or cut request belongs above all others in the percentiles of
//! its latencies and is never left out, while a metric that is null by definition says nothing about speed.

use strum::{IntoStaticStr, VariantArray};

use crate::metrics;
use crate::rows::{Measured, Outcome, Windows};

use super::stats::Summary;
use super::worth::{Sample, Turns};

/// A metric that every request has at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Metric {
    /// first_token − sent, ms.
    Ttft,
    /// first_token − scheduled, ms.
    TtftFromSchedule,
    /// first_output − sent, ms.
    Ttfo,
    /// last_token − sent (not streaming: done − sent), ms.
    E2e,
    /// last_token − scheduled (not streaming: done − scheduled), ms.
    E2eFromSchedule,
    /// (last_token − first_token) / (output tokens − 1), ms.
    Tpot,
    /// sent − released − connecting, ms.
    Lateness,
    /// DNS, TCP and TLS time of a connection opened for this request, ms.
    Connecting,
    /// released − scheduled, ms.
    CapWait,
    /// Output tokens / E2E latency, tokens per second.
    UserThroughput,
    /// (Output tokens − 1) / (last_token − first_token), tokens per second.
    GenerationThroughput,
}

impl Metric {
    /// All of them, in the order of the table of metrics.
    pub const ALL: &'static [Metric] = Metric::VARIANTS;

    /// Its key in the table of metrics.
    pub fn key(self) -> &'static str {
        self.into()
    }

    /// Its entry in the table of metrics.
    pub fn entry(self) -> &'static metrics::Metric {
        metrics::find(self.key()).expect("the table has every metric of a request")
    }
}

/// What one request says about one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observation {
    /// The metric's value.
    Value(f64),
    /// The request failed or was cut: worse than every value. The bound is how long it is known to have taken, in ms; none of a rate.
    Failed(Option<f64>),
    /// Null by the metric's definition.
    Undefined,
}

impl Observation {
    /// The value; none where failed or undefined.
    pub fn value(self) -> Option<f64> {
        match self {
            Observation::Value(value) => Some(value),
            Observation::Failed(_) | Observation::Undefined => None,
        }
    }
}

/// How a request is read: its row, the borders of its run, and whether answers were streamed.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The row.
    pub row: &'a Measured,
    /// Borders of the run's phases: a cut request ended with the run.
    pub windows: &'a Windows,
    /// Whether answers were streamed: without, TTFT, TTFO and TPOT do not exist.
    pub stream: bool,
}

impl Request<'_> {
    /// The metric of this request.
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

    /// A failure of `metric`, with the time that the request is known to have taken.
    fn failed(&self, metric: Metric) -> Observation {
        let end = Some(self.end_ns());
        let (start, end) = match metric {
            // A request that asked for one token would have had no time between tokens had it succeeded.
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

    /// When the whole answer was there: the last token; not streaming, the end of the body.
    pub(crate) fn answered_ns(&self) -> Option<u64> {
        if self.stream { self.row.last_token_ns() } else { self.row.done_ns() }
    }

    /// When the request stopped being in flight; where it never started, when it was wanted.
    pub fn end_ns(&self) -> u64 {
        match (self.row.ended_ns(), self.row.outcome) {
            (Some(ended), _) => ended,
            // It waited until the run was over.
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

    /// Null below two tokens; below two events too, where there is no decode time to divide.
    fn tpot(&self) -> Option<f64> {
        let tokens = self.row.output_tokens().filter(|tokens| *tokens >= 2)?;
        let decode = millis(self.row.last_token_ns()?, self.row.first_token_ns()?);
        (self.row.events >= 2).then(|| decode / f64::from(tokens - 1))
    }

    /// Null only where the request was never sent.
    fn lateness(&self) -> Option<f64> {
        let waited = millis(self.row.sent_ns()?, self.row.released_ns()?);
        Some(waited - self.connecting().unwrap_or(0.0))
    }

    fn connecting(&self) -> Option<f64> {
        self.row.connecting_ns().map(|nanos| nanos as f64 / 1e6)
    }

    fn user_throughput(&self) -> Option<f64> {
        let waited = self.since_sent(self.answered_ns()).filter(|millis| *millis > 0.0)?;
        Some(f64::from(self.row.output_tokens()?) / waited * 1e3)
    }

    /// The inverse of TPOT: the first token comes before the time that is divided. Null where that is, and where it is 0: all tokens
    /// came in one read.
    fn generation_throughput(&self) -> Option<f64> {
        let each = self.tpot().filter(|millis| self.stream && *millis > 0.0)?;
        Some(1e3 / each)
    }
}

/// Milliseconds from one instant to another; negative where the order is reversed, never hidden.
fn millis(to: u64, from: u64) -> f64 {
    (to as f64 - from as f64) / 1e6
}

impl Metric {
    /// How a run's queue bears on the metric: not at all where it is the generator's own.
    fn turns(self, turns: Turns) -> Turns {
        match self {
            Metric::Lateness | Metric::Connecting => Turns::CLOSED,
            _ => turns,
        }
    }
}

/// What some requests, in the order of their schedule, say of one metric, and the largest bound known of a failure. Of a rate
/// these are the negatives, so that what is worse lies above there too.
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

/// The distribution of one metric over some requests, in the order of their schedule.
pub(crate) fn summarize<'a>(requests: impl Iterator<Item = Request<'a>>, metric: Metric, turns: Turns) -> Summary {
    let (sample, bound) = sample(requests, metric, turns);
    if !metric.entry().is_rate() {
        return Summary::of_sample(&sample, bound);
    }
    // Where no answer has the rate (nobody counted tokens), failures do not have it either.
    match sample.rising().first().filter(|negative| negative.is_finite()) {
        Some(negative) => Summary::of_sample(&sample, bound).turned(Some(-negative)),
        None => Summary::of(Vec::new(), 0, None),
    }
}

/// Token events of one request: instant and tokens. An event counts output tokens / events, or 1 where nobody counted
/// the tokens; not streaming, all of an answer's tokens count at `done`.
pub fn token_events(row: &Measured, gaps: &[u64], stream: bool) -> impl Iterator<Item = (u64, f64)> {
    let events = gaps.len() as f64 + 1.0;
    let tokens = row.output_tokens().map(f64::from);
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
