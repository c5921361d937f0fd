//! What an answer tells of its own request: how long its parts took, in the forms of several servers, and the id of its trace.

use rand::RngExt;

use super::config::{Config, TellTimes};
use super::random::random;

/// How long a request took, in nanoseconds; what is not over yet is null.
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

/// The fields of the head, each with its line end.
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
            // In its order, and whole milliseconds cut off as Rust's `as_millis` does.
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

/// The member that llama.cpp ends its answers with, its comma before it; empty where none is asked for.
pub(super) fn timings(config: &Config, took: Option<Took>) -> String {
    let (TellTimes::Timings, Some(took)) = (config.tell_times, took) else { return String::new() };
    let [prefill, decode] = [took.prefill, took.decode].map(|ns| millis(ns.unwrap_or(0)));
    format!(r#","timings":{{"prompt_ms":{prefill:?},"predicted_ms":{decode:?}}}"#)
}

/// The trace id of answer `number`, where it has one.
pub(super) fn trace_id(config: &Config, number: u64) -> Option<String> {
    // Never all zeros, which is none.
    config.trace_ids.then(|| format!("{:032x}", random(config.seed, b"trac", number).random::<u128>().max(1)))
}
