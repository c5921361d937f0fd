//! Conditions on the results of an earlier sweep that decide whether a sweep runs, as the user writes
//! them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::SerializeDisplay;

use crate::metrics::{self, Unit};
use crate::plan::diagnostic::suggest;
use crate::plan::model::compare::MetricName;
use crate::plan::model::take::SweepMetric;
use crate::units::text::digits;
use crate::units::{Decimal, Forms, Nanos, Share};

/// The value that is read from a sweep: the highest load that it found, or a metric that it measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, SerializeDisplay)]
pub enum AskedMetric {
    /// For each cell of the sweep: the highest load that meets the objective.
    Load(SweepMetric),
    /// For each cell of the sweep: a metric, over all valid repeats.
    Measured(MetricName),
}

impl AskedMetric {
    /// The unit of bounds on the metric.
    pub fn unit(self) -> Unit {
        match self {
            AskedMetric::Load(SweepMetric::MaxQpsUnderSlo) => Unit::RequestsPerSecond,
            AskedMetric::Load(SweepMetric::MaxBatchSizeUnderSlo) => Unit::Requests,
            AskedMetric::Measured(name) => metrics::find(name.key).map_or(Unit::Ratio, |metric| metric.unit),
        }
    }

    /// Whether this axis is ignored when the result for a cell is looked up. A found load is itself a value
    /// of its axis, and a metric is read at every load.
    pub fn is_over(self, axis: &str) -> bool {
        match self {
            AskedMetric::Load(metric) => metric.axis() == axis,
            AskedMetric::Measured(_) => SweepMetric::ALL.iter().any(|load| load.axis() == axis),
        }
    }

    /// Formats a value of the metric: `24 qps`, `512 ms`, `1.2 %`.
    pub fn words(self, value: f64) -> String {
        match self {
            AskedMetric::Load(load) => format!("{value} {}", load.unit()),
            AskedMetric::Measured(_) if self.unit() == Unit::Share => format!("{} %", rounded(100.0 * value)),
            AskedMetric::Measured(_) => format!("{} {}", rounded(value), self.unit().symbol()).trim_end().to_owned(),
        }
    }
}

/// Formats a number without trailing zeros: `5`, not `5.00`.
fn rounded(value: f64) -> String {
    let text = digits(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

impl From<SweepMetric> for AskedMetric {
    fn from(load: SweepMetric) -> AskedMetric {
        AskedMetric::Load(load)
    }
}

impl fmt::Display for AskedMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskedMetric::Load(load) => f.write_str(load.name()),
            AskedMetric::Measured(name) => name.fmt(f),
        }
    }
}

impl FromStr for AskedMetric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(load) = SweepMetric::ALL.into_iter().find(|load| load.name() == text) {
            return Ok(AskedMetric::Load(load));
        }
        text.parse().map(AskedMetric::Measured).map_err(|why| {
            let names = || SweepMetric::ALL.into_iter().map(SweepMetric::name);
            let begun = || names().find(|name| text.len() > 2 && name.starts_with(text));
            match suggest::nearest(text, names()).or_else(begun) {
                Some(near) => format!("unknown metric `{text}`: did you mean `{near}`?"),
                None => why,
            }
        })
    }
}

impl<'de> Deserialize<'de> for AskedMetric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("the name of a metric, like max_qps_under_slo or error_share").parsed().read(deserializer)
    }
}

impl JsonSchema for AskedMetric {
    fn schema_name() -> Cow<'static, str> {
        "AskedMetric".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (load, measured) = (generator.subschema_for::<SweepMetric>(), generator.subschema_for::<MetricName>());
        json_schema!({ "anyOf": [load, measured] })
    }
}

/// A bound on a metric, in the metric's own unit: `500ms` for a time, `1%` for a share, a number for anything
/// else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// A plain number: a bound on a load, a rate, a count, a ratio or money.
    Number(Decimal),
    /// A duration: a bound on a latency.
    Time(Nanos),
    /// A percentage: a bound on a share.
    Share(Share),
}

impl Bound {
    /// Whether this bound is valid for a metric in this unit.
    pub fn is_in(self, unit: Unit) -> bool {
        match unit {
            Unit::Millis => matches!(self, Bound::Time(_)),
            Unit::Share => matches!(self, Bound::Share(_)),
            _ => matches!(self, Bound::Number(_)),
        }
    }

    /// The bound in the unit of the metric's values: milliseconds, a share between 0 and 1, or a plain
    /// number.
    pub fn to_f64(self) -> f64 {
        match self {
            Bound::Number(number) => number.to_f64(),
            Bound::Time(time) => time.millis(),
            Bound::Share(share) => share.to_f64(),
        }
    }

    /// Whether the bound is above 0, so that values can lie below it.
    pub fn is_positive(self) -> bool {
        self.to_f64() > 0.0
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Number(number) => number.fmt(f),
            Bound::Time(time) => time.fmt(f),
            Bound::Share(share) => share.fmt(f),
        }
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Bound::Number(number) => number.serialize(serializer),
            Bound::Time(time) => time.serialize(serializer),
            Bound::Share(share) => share.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Forms::expecting("a number, a time like 500ms or a share like 1%")
            .number(Bound::Number)
            .text(|text| {
                let text = text.trim();
                if text.ends_with('%') { Ok(Bound::Share(text.parse()?)) } else { Ok(Bound::Time(text.parse()?)) }
            })
            .read(deserializer)
    }
}

impl JsonSchema for Bound {
    fn schema_name() -> Cow<'static, str> {
        "Bound".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (number, time) = (generator.subschema_for::<Decimal>(), generator.subschema_for::<Nanos>());
        json_schema!({ "anyOf": [number, time, generator.subschema_for::<Share>()] })
    }
}

/// When to skip the cells of a sweep, based on the results of an earlier one.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkipIf {
    /// The earlier sweep.
    #[schemars(example = &"limit")]
    pub sweep: String,
    /// The metric to read.
    pub metric: AskedMetric,
    /// Cells are skipped if the value is below this bound, in the metric's unit: 2, 500ms, 1%.
    #[schemars(example = 2)]
    pub below: Option<Bound>,
    /// Cells are skipped if the value is above this bound, in the metric's unit: 200, 500ms, 1%.
    #[schemars(example = 200)]
    pub above: Option<Bound>,
}

/// The result that an earlier sweep must have; otherwise, this sweep and the sweeps that depend on it do not
/// run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The earlier sweep.
    #[schemars(example = &"limit")]
    pub sweep: String,
    /// The metric to read.
    pub metric: AskedMetric,
    /// The gate fails if a value is below this bound, in the metric's unit: 20, 500ms, 1%.
    #[schemars(example = 20)]
    pub at_least: Option<Bound>,
    /// The gate fails if a value is above this bound, in the metric's unit: 200, 500ms, 1%.
    #[schemars(example = 200)]
    pub at_most: Option<Bound>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_read_in_the_unit_that_it_is_written_in() {
        let read = |text: &str| serde_json::from_str::<Bound>(text).map_err(|error| error.to_string());
        for (written, is, value) in
            [("2.5", Unit::Ratio, 2.5), ("\"500ms\"", Unit::Millis, 500.0), ("\"1%\"", Unit::Share, 0.01)]
        {
            let bound = read(written).unwrap();
            assert!(bound.is_in(is) && (bound.to_f64() - value).abs() < 1e-12, "{written}: {bound:?}");
            assert_eq!(serde_json::to_string(&bound).unwrap(), written);
            assert!(
                [Unit::Ratio, Unit::Millis, Unit::Share].into_iter().filter(|unit| bound.is_in(*unit)).count() == 1
            );
        }
        assert!(read("\"fast\"").unwrap_err().contains("`fast` is not a duration"));
    }

    #[test]
    fn loads_and_metrics_are_asked_for_by_name() {
        let read = |text: &str| text.parse::<AskedMetric>();
        assert_eq!(read("max_qps_under_slo"), Ok(AskedMetric::Load(SweepMetric::MaxQpsUnderSlo)));
        assert_eq!(read("ttft_p99").map(|metric| metric.to_string()).as_deref(), Ok("ttft_p99"));
        assert_eq!(
            read("max_qps_under_sl").unwrap_err(),
            "unknown metric `max_qps_under_sl`: did you mean `max_qps_under_slo`?"
        );
        assert!(read("ttft_p42").is_err());
    }
}
