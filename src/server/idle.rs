//! Checks whether a server is idle: by its metrics for the numbers of running and waiting requests (its
//! "gauge"), or, if it has none, by the time that it takes to generate one token.

use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::Value;

use super::probe::{self, LONGEST_WAIT, ProbeError, Question};
use crate::network::{Client, Request};
use crate::plan::DIALECTS;
use crate::plan::model::dialect::Gauges;
use crate::rows::ServerLoad;
use crate::telemetry::text::samples;
use crate::units::Nanos;

/// The page that contains a server's gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gauge {
    /// `/metrics` at the server's root.
    Root,
    /// `/metrics` below the API's base address.
    Base,
}

/// Checks how busy a server is.
#[derive(Debug, Clone)]
pub struct Busy {
    client: Client,
    question: Question,
}

impl Busy {
    /// Creates the check for the server of `question`.
    pub fn new(question: Question) -> Result<Busy, ProbeError> {
        let question = Question {
            connect: question.connect.min(LONGEST_WAIT),
            within: question.within.min(LONGEST_WAIT),
            ..question
        };
        let client = probe::client(&question);
        let client = client.map_err(|error| probe::unreachable(&question, error.to_string()))?;
        Ok(Busy { client, question })
    }

    /// Uses the address and the model of `question` from now on. They must belong to the same server.
    pub fn ask_for(&mut self, question: Question) {
        (self.question.route, self.question.model) = (question.route, question.model);
    }

    /// Returns the model from which one token is requested.
    pub fn model(&self) -> &str {
        &self.question.model
    }

    /// Looks for a gauge and returns it with its value; `None` if the server has no known gauge.
    pub async fn find_gauge(&self) -> Result<Option<(Gauge, ServerLoad)>, ProbeError> {
        for gauge in [Gauge::Root, Gauge::Base] {
            if let Some(load) = self.read(gauge).await? {
                return Ok(Some((gauge, load)));
            }
        }
        Ok(None)
    }

    /// Reads a gauge; `None` if it does not exist.
    pub async fn read(&self, gauge: Gauge) -> Result<Option<ServerLoad>, ProbeError> {
        let path = match gauge {
            Gauge::Root => self.question.address().beside_api("/metrics"),
            Gauge::Base => self.question.address().of_api("/metrics"),
        };
        let response = probe::send(&self.client, Request::get(path), &self.question).await?;
        match response.status().as_u16() {
            // These statuses do not show whether the server has a gauge.
            429 | 502 | 503 | 504 => return Err(probe::refusal(&self.question, response).await),
            200..300 => {}
            _ => return Ok(None),
        }
        match probe::body(response, &self.question).await? {
            Value::String(text) => Ok(load_in(&text)),
            _ => Ok(None),
        }
    }

    /// Measures how long the server takes to generate one token, which is its TTFT. `within` is the time
    /// limit. It should be long, because an abandoned request may remain in the server's queue.
    pub async fn one_token(&self, within: Duration) -> Result<Nanos, ProbeError> {
        let question = Question { within: Nanos::from(within), ..self.question.clone() };
        let start = Instant::now();
        let request = probe::generation(&question, 1).within(within);
        let response = probe::send(&self.client, request, &question).await?;
        if response.status() != StatusCode::OK {
            return Err(probe::refusal(&question, response).await);
        }
        probe::body(response, &question).await?;
        Ok(Nanos::from(start.elapsed()))
    }
}

/// Returns the value of the gauge on the metrics page of any known engine, summed over models, ranks and
/// replicas. `None` if the number of running or waiting requests is missing.
fn load_in(text: &str) -> Option<ServerLoad> {
    let gauges = DIALECTS.iter().filter_map(|dialect| dialect.gauges.as_ref());
    gauges.into_iter().find_map(|Gauges { running, waiting, .. }| {
        let (running, waiting) = (sum(text, running)?, sum(text, waiting)?);
        Some(ServerLoad { running, waiting })
    })
}

/// Returns the sum of all samples of the metric `name`; `None` if there are none, or if one of them is not
/// a count. Malformed lines are ignored, because they do not affect the gauge.
fn sum(text: &str, name: &str) -> Option<u64> {
    let named = samples(text).filter_map(Result::ok).filter(|sample| sample.name == name);
    let values: Vec<f64> = named.map(|sample| sample.value).collect();
    let are_counts = !values.is_empty() && values.iter().all(|value| value.is_finite() && *value >= 0.0);
    are_counts.then(|| values.iter().sum::<f64>().ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(running: u64, waiting: u64) -> Option<ServerLoad> {
        Some(ServerLoad { running, waiting })
    }

    #[test]
    fn every_engine_s_gauges_are_known() {
        let vllm = "# HELP vllm:num_requests_running Number of requests in model execution batches.\n\
                    # TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"a}\\\"b\"} 2.0\n\
                    vllm:num_requests_running{engine=\"1\",model_name=\"a\"} 1.0\n\
                    vllm:num_requests_waiting{engine=\"0\",model_name=\"a\"} 5.0 1700000000000\n\
                    vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"capacity\"} 5.0\n";
        assert_eq!(load_in(vllm), load(3, 5));
        let sglang =
            "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"0\"} 0\nsglang:num_queue_reqs{model_name=\"m\"} 0\n";
        assert_eq!(load_in(sglang), load(0, 0));
        assert_eq!(load_in("tgi_batch_current_size 4\ntgi_queue_size 7\n"), load(4, 7));
        assert_eq!(load_in("llamacpp:requests_processing 1\nllamacpp:requests_deferred 46\n"), load(1, 46));
        assert_eq!(load_in("num_requests_running{model_name=\"m\"} 1.0\nnum_requests_waiting 0.0\n"), load(1, 0));
    }

    #[test]
    fn half_a_gauge_is_none() {
        assert_eq!(load_in("vllm:num_requests_running 0\n"), None);
        assert_eq!(load_in("vllm:num_requests_running NaN\nvllm:num_requests_waiting 0\n"), None);
        assert_eq!(load_in("process_cpu_seconds_total 3\n"), None);
        assert_eq!(load_in("<html>not found</html>"), None);
        assert_eq!(load_in("vllm:num_requests_running_total 3\nvllm:num_requests_waiting 0\n"), None);
    }
}
