//! The times and the token count that a server reports in its response: the `timings` of llama.cpp's server.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Longest valid time, in milliseconds (31 years). Instants of a run are stored as nanoseconds in 63 bits.
const MOST_MS: f64 = 1e12;

/// Times that the server reports in the body of its response, in nanoseconds; `None` if a time is missing
/// or invalid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(from = "Loose")]
pub struct Timings {
    /// Time from the assignment of a slot to the end of the prompt's processing: `prompt_ms`.
    pub prefill_ns: Option<u64>,
    /// Time from the end of the prompt's processing to the last token: `predicted_ms`.
    pub decode_ns: Option<u64>,
    /// Number of output tokens: `predicted_n`. It may be impossible.
    pub tokens: Option<f64>,
}

/// Accepts any JSON value, so that a response with invalid `timings` only loses its times.
#[derive(Deserialize)]
#[serde(untagged)]
enum Loose {
    Object {
        #[serde(default)]
        prompt_ms: Number,
        #[serde(default)]
        predicted_ms: Number,
        #[serde(default)]
        predicted_n: Number,
    },
    Other(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Is(f64),
    Other(IgnoredAny),
}

impl Default for Number {
    fn default() -> Self {
        Number::Other(IgnoredAny)
    }
}

impl Number {
    fn nanos(&self) -> Option<u64> {
        match self {
            Number::Is(ms) => nanos(*ms),
            Number::Other(_) => None,
        }
    }

    fn count(&self) -> Option<f64> {
        match self {
            Number::Is(count) => Some(*count),
            Number::Other(_) => None,
        }
    }
}

impl From<Loose> for Timings {
    fn from(loose: Loose) -> Timings {
        match loose {
            Loose::Object { prompt_ms, predicted_ms, predicted_n } => {
                Timings { prefill_ns: prompt_ms.nanos(), decode_ns: predicted_ms.nanos(), tokens: predicted_n.count() }
            }
            Loose::Other(_) => Timings::default(),
        }
    }
}

/// Converts milliseconds to nanoseconds; `None` if the time is not valid.
pub(crate) fn nanos(ms: f64) -> Option<u64> {
    (0.0..=MOST_MS).contains(&ms).then(|| (ms * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_and_what_is_none_costs_nothing() {
        let of = |json: &str| {
            let timings: Timings = serde_json::from_str(json).unwrap();
            (timings.prefill_ns, timings.decode_ns)
        };
        let told =
            r#"{"cache_n":3,"prompt_n":1,"prompt_ms":2.5,"prompt_per_second":400.0,"predicted_n":2,"predicted_ms":7}"#;
        assert_eq!(of(told), (Some(2_500_000), Some(7_000_000)));
        assert_eq!(serde_json::from_str::<Timings>(told).unwrap().tokens, Some(2.0));
        assert_eq!(of(r#"{"prompt_ms":-1,"predicted_ms":1e300}"#), (None, None));
        assert_eq!(of(r#"{"prompt_ms":"2","predicted_ms":{"a":[]}}"#), (None, None));
        for other in ["7", "[1]", "\"x\"", "true", "{}"] {
            assert_eq!(of(other), (None, None), "{other}");
        }
    }
}
