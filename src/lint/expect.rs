//! Estimates the number of requests of a run. In an open loop, the number follows from the rate. In a
//! closed loop, it depends on the speed of the server, so it is based on an assumption.

use crate::expand::{Course, Load};
use crate::plan::model::content::Resolved;
use crate::plan::{Endpoint, MockFigures};
use crate::units::Nanos;
use crate::workload::lengths::expected;

use super::view::{Rung, SweepView};

/// Assumed time per output token on a server of unknown speed, in seconds. It amounts to 50 tokens per second
/// and stream, which is faster than anyone reads. Only closed loops and M024 need the assumption, and every
/// message that depends on the assumption states it.
const TOKEN_SECS: f64 = 0.02;

/// The words with which messages state the assumption about the time per output token.
pub(crate) const ASSUMPTION: &str = "assuming 20ms per output token";

/// The figures that determine the expected number of requests in a sweep's slowest runs.
pub(super) struct Expect {
    /// Duration of a request, in seconds; the longest over the sweep's endpoints.
    request_secs: f64,
    /// Maximum number of requests that the server processes at once; infinite unless the server is a mock.
    slots: f64,
    /// Whether the duration of a request is assumed.
    assumed: bool,
    /// Minimum number of requests per arrival.
    per_arrival: f64,
    /// Maximum think time of a user after a response, in seconds.
    think_secs: f64,
}

impl Expect {
    /// Computes the expectation for the slowest cells of a sweep.
    pub(super) fn of(sweep: &SweepView) -> Expect {
        let (_, output) =
            sweep.tokens("output_tokens", |scenario: &Resolved| expected(&scenario.content).output as u32);
        let (_, prompt) = sweep.tokens("prompt_tokens", |scenario| expected(&scenario.content).prompt as u32);
        let (_, system) = sweep.tokens("system_tokens", |scenario| scenario.content.system_tokens);
        let (per_arrival, _) = sweep.requests_per_arrival();
        let blank = || Expect {
            request_secs: 0.0,
            slots: f64::INFINITY,
            assumed: false,
            per_arrival: f64::from(per_arrival),
            think_secs: sweep.think_secs(),
        };
        let mut slowest = blank();
        for (_, endpoint) in &sweep.endpoints {
            let output = if endpoint.api.generates() { output } else { 0 };
            let one = match embedded(endpoint) {
                Some(figures) => Expect {
                    request_secs: mock_secs(&figures, prompt.saturating_add(system), output),
                    slots: f64::from(figures.slots),
                    ..blank()
                },
                None => Expect { request_secs: f64::from(output) * TOKEN_SECS, assumed: true, ..blank() },
            };
            if one.request_secs > slowest.request_secs {
                slowest = one;
            }
        }
        slowest
    }

    /// Returns the duration of a request, in seconds, and ` (assuming …)` if it depends on the assumption.
    pub(super) fn request(&self) -> (f64, String) {
        let assumption = if self.assumed { format!(" ({ASSUMPTION})") } else { String::new() };
        (self.request_secs, assumption)
    }

    /// Requests per second of a closed loop with this number of users.
    pub(super) fn closed_rate(&self, users: f64) -> f64 {
        // Even an instantaneous response takes a round trip.
        let request = self.request_secs.max(1e-4);
        (users / (request + self.think_secs)).min(self.slots / request)
    }

    /// Minimum number of requests per arrival of an open loop.
    pub(super) fn per_arrival(&self) -> f64 {
        self.per_arrival
    }

    /// Requests per second of a rung in its measure window.
    pub(super) fn rate(&self, rung: &Rung) -> f64 {
        match &rung.load {
            Load::Open { qps, .. } => {
                let measure = rung.phases.measure.duration;
                let arrivals = match varying(rung) {
                    None => qps.to_f64(),
                    Some(course) => in_window(&course, rung, measure) / measure.secs(),
                };
                arrivals * self.per_arrival
            }
            Load::Closed { batch_size } => self.closed_rate(f64::from(*batch_size)),
        }
    }

    /// Number of requests in the measure window, including its extension until `min_requests` or
    /// `at_most`.
    pub(super) fn measured(&self, rung: &Rung) -> f64 {
        let (measure, rate) = (rung.phases.measure, self.rate(rung));
        let most = measure.at_most.unwrap_or(measure.duration);
        let longest =
            varying(rung).map_or(most.secs() * rate, |course| in_window(&course, rung, most) * self.per_arrival);
        let wanted = measure.min_requests.unwrap_or(0) as f64;
        (measure.duration.secs() * rate).max(wanted.min(longest))
    }

    /// Number of requests before the measure window. The load rises linearly during fill and is at its full
    /// level during stabilize.
    pub(crate) fn warming(&self, rung: &Rung) -> f64 {
        match varying(rung) {
            None => self.rate(rung) * (rung.phases.fill.secs() / 2.0 + rung.phases.stabilize.secs()),
            Some(course) => course.expected(rung.phases.measure_start().secs()) * self.per_arrival,
        }
    }

    /// Requests per second at the end of fill.
    pub(crate) fn settled(&self, rung: &Rung) -> f64 {
        varying(rung).map_or_else(|| self.rate(rung), |course| course.settled() * self.per_arrival)
    }

    /// Returns ` (assuming …)` if the expected number for a rung depends on the assumption.
    pub(crate) fn assumption(&self, rung: &Rung) -> String {
        match rung.load {
            Load::Closed { .. } if self.assumed => format!(" ({ASSUMPTION})"),
            _ => String::new(),
        }
    }
}

/// The rate profile, if the rate is not constant.
fn varying(rung: &Rung) -> Option<Course> {
    rung.load.profile()?;
    rung.course()
}

/// Expected number of requests in a window of this length.
fn in_window(course: &Course, rung: &Rung, length: Nanos) -> f64 {
    let start = rung.phases.measure_start();
    course.between(start.0, start.saturating_add(length).0)
}

/// The figures of an embedded mock.
fn embedded(endpoint: &Endpoint) -> Option<MockFigures> {
    let embedded = endpoint.is_embedded();
    embedded.then(|| endpoint.mock.clone().unwrap_or_default())
}

/// Duration of one response of a mock whose slots are all busy, in seconds.
fn mock_secs(figures: &MockFigures, prompt: u32, output: u32) -> f64 {
    let busy = 1.0 + figures.load.to_f64() * f64::from(figures.slots.saturating_sub(1));
    let gaps = f64::from(output.saturating_sub(1));
    figures.ttft.secs() + figures.prefill.0.secs() * f64::from(prompt) + figures.itl.secs() * busy * gaps
}
