//! The cells that a plan intends to compare, and the metrics of the comparison.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::SerializeDisplay;

use crate::metrics::{self, METRICS, Metric, Unit};
use crate::plan::diagnostic::suggest;
use crate::plan::model::axis;
use crate::plan::model::objective::Percentile;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::shorthand::OneOrMany;
use crate::units::{Forms, Share};

/// The planned comparison of cells that differ in one axis. It is declared before the results are seen:
/// `check` tests whether the plan can support it, `run` arranges the compared cells in rounds, and `compare`
/// reports the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The axis whose values are compared, like endpoint.
    #[schemars(example = &"endpoint")]
    pub by: String,
    /// The value of that axis to which all others are compared.
    #[schemars(example = &"vllm")]
    pub baseline: Scalar,
    /// Metrics to compare, like output_throughput or ttft. A metric of requests may name one percentile, like
    /// ttft_p99; without a percentile, p50 and p99 are compared. The unit suffix of an export's column is
    /// accepted: ttft_p99_ms. Default: output throughput, total and per accelerator, and p50 and p99 of TTFT,
    /// TPOT and E2E. docs/METRICS.md lists the names under "Names".
    #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
    pub metrics: OneOrMany<MetricName>,
    /// How much worse than the baseline an arm may be, like 2%. `compare` then reports for each metric
    /// whether the arm is shown to be worse by no more than this margin, and a gate passes only if this is
    /// shown. The margin is a percentage of the baseline for times, rates and money, and percentage points
    /// for shares. Default: no margin; a gate then fails if an arm is shown to be worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"2%")]
    pub margin: Option<Share>,
    /// End the rounds of a cell once each of its metrics is decided: the arms are shown to differ, or to
    /// differ by less than the margin. `repeats` is then the maximum number of rounds; `run` tests after
    /// each round from the third on, and the p-values and intervals of `compare` hold over all tests
    /// together. Default: all rounds run, with one test at the end.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    #[schemars(example = true)]
    pub sequential: bool,
}

/// Whether a share can be a margin. No measurement could show that an arm is within a margin of 0 %, and
/// every arm would be within a margin of 100 %.
pub fn is_margin(share: Share) -> bool {
    share > Share::percent(0) && share < Share::percent(100)
}

/// The primary name of an axis: for `concurrency`, it is `batch_size`.
pub fn axis_name(by: &str) -> &str {
    axis::first_name(by).unwrap_or(by)
}

/// The percentiles, by the suffix of a metric's name.
const ENDS: [(&str, Percentile); 6] = [
    ("_p50", Percentile::P50),
    ("_p75", Percentile::P75),
    ("_p90", Percentile::P90),
    ("_p95", Percentile::P95),
    ("_p99", Percentile::P99),
    ("_p999", Percentile::P999),
];

/// Suffixes of columns that are not part of a metric's name.
const COLUMN_WORDS: [&str; 7] = ["ms", "mean", "sd", "max", "n", "failures", "effective"];
/// Text that is appended to the lists of metric names in messages.
const PERCENTILES: &str = "; for metrics of requests also one percentile, like ttft_p99 (docs/METRICS.md, Names)";

/// The name of a metric of a run, or of a metric of requests with or without a percentile:
/// `output_throughput`, `ttft`, `ttft_p99`. The column of such a value in exports has the same name with the
/// unit appended, which is also accepted: `ttft_p99_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, SerializeDisplay)]
pub struct MetricName {
    /// The key in the table of metrics.
    pub key: &'static str,
    /// The percentile, if the name contains one.
    pub percentile: Option<Percentile>,
}

impl MetricName {
    /// Returns the name of a single value of a run: for a metric of requests without a percentile, its median.
    pub fn or_median(self) -> MetricName {
        let is_of_requests = metrics::find(self.key).is_some_and(|metric| metric.kind.is_distribution());
        let median = is_of_requests.then_some(Percentile::P50);
        MetricName { percentile: self.percentile.or(median), ..self }
    }
}

impl FromStr for MetricName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        exact(text).ok_or_else(|| format!("unknown metric `{text}`: {}", remedy(text)))
    }
}

/// Every key, with the metrics of runs first.
fn keys() -> impl Iterator<Item = &'static str> + Clone {
    METRICS.iter().map(|metric| metric.key)
}

fn exact(text: &str) -> Option<MetricName> {
    METRICS.iter().find_map(|metric| named(metric, text))
}

/// Parses a text as the name of a value of this metric; `None` if it is not such a name.
fn named(metric: &Metric, text: &str) -> Option<MetricName> {
    let Metric { key, unit, .. } = *metric;
    let end = text.strip_prefix(key)?;
    if end.is_empty() {
        return Some(MetricName { key, percentile: None });
    }
    let bare = end.strip_suffix(unit.suffix()).unwrap_or(end);
    if !metric.kind.is_distribution() {
        return bare.is_empty().then_some(MetricName { key, percentile: None });
    }
    let (_, percentile) = ENDS.iter().find(|(name, _)| *name == bare)?;
    Some(MetricName { key, percentile: Some(*percentile) })
}

/// The remedy for an unknown name.
fn remedy(text: &str) -> String {
    let text = text.to_lowercase().replace(['-', ' '], "_");
    if text.contains("total") {
        return "prompt and output tokens are never added up; write output_throughput and prompt_throughput".to_owned();
    }
    // Any percentile may be the suffix. Columns of exports may have another word in place of the percentile.
    let is_end = |word: &&str| word.len() > 1 && word.starts_with('p') && word[1..].bytes().all(|b| b.is_ascii_digit());
    let end = text.split('_').find(is_end);
    let words: Vec<&str> = text.split('_').filter(|word| !is_end(word) && !COLUMN_WORDS.contains(word)).collect();
    let name = words.join("_");
    let near = exact(&name).map(|known| known.key).or_else(|| suggest::nearest(&name, keys()));
    match (near, end) {
        (Some(key), Some(_)) if metrics::find(key).is_some_and(|metric| !metric.kind.is_distribution()) => {
            format!("did you mean `{key}`? It is a single number per run and has no percentiles")
        }
        (Some(key), Some(end)) if ENDS.iter().any(|(known, _)| known[1..] == *end) => {
            format!("did you mean `{key}_{end}`?")
        }
        (Some(key), Some(_)) => {
            let names: Vec<String> = ENDS.iter().map(|(end, _)| format!("{key}{end}")).collect();
            format!("write {}", suggest::choices(names.iter().map(String::as_str)))
        }
        (Some(key), None) => format!("did you mean `{key}`?"),
        (None, _) => {
            let holding: Vec<&str> = keys().filter(|key| !name.is_empty() && key.contains(&name)).collect();
            let offered = if holding.is_empty() { keys().collect() } else { holding };
            format!("write {}{PERCENTILES}", suggest::choices(offered))
        }
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = ENDS.iter().find(|(_, percentile)| Some(*percentile) == self.percentile).map_or("", |(end, _)| end);
        write!(f, "{}{end}", self.key)
    }
}

impl<'de> Deserialize<'de> for MetricName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("the name of a metric, like output_throughput or ttft_p99").parsed().read(deserializer)
    }
}

impl JsonSchema for MetricName {
    fn schema_name() -> Cow<'static, str> {
        "MetricName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let ends: Vec<&str> = ENDS.iter().map(|(end, _)| *end).collect();
        let distributions = |unit: Unit| METRICS.iter().filter(move |it| it.kind.is_distribution() && it.unit == unit);
        let one = |unit: Unit| {
            let keys: Vec<&str> = distributions(unit).map(|metric| metric.key).collect();
            format!("({})({})({})?", keys.join("|"), ends.join("|"), unit.suffix())
        };
        let pattern = format!("^({}|{})$", one(Unit::Millis), one(Unit::TokensPerSecond));
        let has_unit = |metric: &&Metric| !metric.kind.is_distribution() && !metric.unit.suffix().is_empty();
        let with_unit: Vec<String> = METRICS.iter().filter(has_unit).map(Metric::column).collect();
        let single = format!("^({})$", with_unit.join("|"));
        let names: Vec<&str> = keys().collect();
        json_schema!({ "anyOf": [
            { "enum": names },
            { "type": "string", "pattern": pattern },
            { "type": "string", "pattern": single },
        ] })
    }
}
