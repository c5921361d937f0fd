//! Formats the times and the trace id that a response reports, in the formats of several servers.

use rand::RngExt;

use super::config::{Config, TellTimes};
use super::random::random;

/// How long the parts of a request took, in nanoseconds; `None` for parts that have not ended yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Took {
    pub(super) queue: u64,
    pub(super) prefill: Option<u64>,
    pub(super) decode: Option<u64>,
    pub(super) total: Option<u64>,
}

fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Returns the header fields with the times and the trace id, each with its line end; empty if none is
/// configured.
pub(super) fn fields(config: &Config, took: Option<Took>, trace: Option<&str>) -> String {
    let mut text = String::new();
    match (config.tell_times, took) {
        (TellTimes::ServerTiming, Some(took)) => {
            let Took { queue, prefill, decode, total } = took;
            let parts = [("queue", Some(queue)), ("prefill", prefill), ("decode", decode), ("total", total)];
            let parts = parts.iter().filter_map(|(name, ns)| Some(format!("{name};dur={:?}", millis((*ns)?))));
            text += &format!("server-timing: {}\r\n", parts.collect::<Vec<_>>().join(", "));
        }
        (TellTimes::Tgi, Some(Took { queue, total: Some(total), .. })) => {
            // The fields are in TGI's order, truncated to whole milliseconds as by Rust's `as_millis`.
            text += &format!(
                "x-compute-type: cpu\r\nx-total-time: {}\r\nx-queue-time: {}\r\nx-inference-time: {}\r\n",
                total / 1_000_000,
                queue / 1_000_000,
                total.saturating_sub(queue) / 1_000_000
            );
        }
        _ => {}
    }
    if let Some(trace) = trace {
        text += &format!("traceparent: 00-{trace}-{}-01\r\n", &trace[..16]);
    }
    text
}

/// Returns a comma and the JSON member `timings`, which is the last member of llama.cpp's responses; empty if
/// this is not configured.
pub(super) fn timings(config: &Config, took: Option<Took>) -> String {
    let (TellTimes::Timings, Some(took)) = (config.tell_times, took) else { return String::new() };
    let [prefill, decode] = [took.prefill, took.decode].map(|ns| millis(ns.unwrap_or(0)));
    format!(r#","timings":{{"prompt_ms":{prefill:?},"predicted_ms":{decode:?}}}"#)
}

/// Returns the trace id of response `number`; `None` if trace ids are not configured.
pub(super) fn trace_id(config: &Config, number: u64) -> Option<String> {
    // The id is never all zeros, because that is invalid.
    config.trace_ids.then(|| format!("{:032x}", random(config.seed, b"trac", number).random::<u128>().max(1)))
}
