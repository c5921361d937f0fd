//! Which cells a plan means to compare, and by which metrics.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::model::{Percentile, Scalar, Sweep};
use super::shorthand::OneOrMany;
use super::suggest;

/// Which cells will be compared: those that differ in one axis. It is declared before the results are seen, and `check`
/// looks whether the plan can carry it; the command that compares comes with a later version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The axis whose values are compared, like endpoint.
    #[schemars(example = &"endpoint")]
    pub by: String,
    /// The value of that axis that all others are compared with.
    #[schemars(example = &"vllm")]
    pub baseline: Scalar,
    /// What is compared: metrics under their names in exports, like output_throughput or ttft; of a latency also one
    /// percentile, like ttft_p99. Default: all.
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    pub metrics: OneOrMany<MetricName>,
}

impl Compare {
    /// Whether a sweep has cells that this compares: the baseline and at least one other value on the axis.
    pub fn applies_to(&self, sweep: &Sweep) -> bool {
        let values = sweep.values(&self.by);
        values.len() > 1 && values.contains(&self.baseline)
    }
}

/// Metrics with one value for each run.
pub const SINGLE_METRICS: [&str; 20] = [
    "requests",
    "completed",
    "failed",
    "cut",
    "error_share",
    "output_throughput",
    "output_throughput_per_gpu",
    "prompt_throughput",
    "request_throughput",
    "derived_server_throughput",
    "achieved_rate",
    "achieved_concurrency",
    "tokens_per_event",
    "jitter_ratio",
    "jitter_ratio_low",
    "jitter_ratio_high",
    "goodput_share",
    "goodput",
    "cost_per_million_output_tokens",
    "tokens_per_unit_of_money",
];

/// Metrics with one value for each request, so with percentiles for each run.
pub const SPREAD_METRICS: [&str; 12] = [
    "ttft",
    "ttft_from_schedule",
    "ttfo",
    "e2e",
    "e2e_from_schedule",
    "tpot",
    "itl",
    "lateness",
    "connecting",
    "cap_wait",
    "user_throughput",
    "generation_throughput",
];

/// The percentiles as ends of names.
const ENDS: [(&str, Percentile); 6] = [
    ("_p50", Percentile::P50),
    ("_p75", Percentile::P75),
    ("_p90", Percentile::P90),
    ("_p95", Percentile::P95),
    ("_p99", Percentile::P99),
    ("_p999", Percentile::P999),
];

/// The name of a metric of a run, of a latency with or without a percentile: `output_throughput`, `ttft`, `ttft_p99`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricName {
    /// The metric, as in the table of metrics.
    pub key: &'static str,
    /// The percentile that is named.
    pub percentile: Option<Percentile>,
}

impl FromStr for MetricName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |name: &str, table: &[&'static str]| table.iter().copied().find(|key| *key == name);
        let all = || SINGLE_METRICS.into_iter().chain(SPREAD_METRICS);
        let whole = all().find(|key| *key == text).map(|key| MetricName { key, percentile: None });
        let part = ENDS.iter().find_map(|(end, percentile)| {
            let key = known(text.strip_suffix(end)?, &SPREAD_METRICS)?;
            Some(MetricName { key, percentile: Some(*percentile) })
        });
        whole.or(part).ok_or_else(|| {
            let remedy = match suggest::nearest(text, all()) {
                _ if text.contains("total") => {
                    "prompt and output tokens are never added up; write output_throughput and prompt_throughput"
                        .to_owned()
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => "write one of `sweepline export`, like output_throughput or ttft_p99".to_owned(),
            };
            format!("there is no metric `{text}`: {remedy}")
        })
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = ENDS.iter().find(|(_, percentile)| Some(*percentile) == self.percentile).map_or("", |(end, _)| end);
        write!(f, "{}{end}", self.key)
    }
}

impl Serialize for MetricName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MetricName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = MetricName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a metric, like output_throughput or ttft_p99")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<MetricName, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(V)
    }
}

impl JsonSchema for MetricName {
    fn schema_name() -> Cow<'static, str> {
        "MetricName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let ends: Vec<&str> = ENDS.iter().map(|(end, _)| *end).collect();
        let pattern = format!("^({})({})$", SPREAD_METRICS.join("|"), ends.join("|"));
        let names: Vec<&str> = SINGLE_METRICS.into_iter().chain(SPREAD_METRICS).collect();
        json_schema!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": pattern }] })
    }
}
