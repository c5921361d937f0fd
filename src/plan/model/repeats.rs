//! How often each cell of a sweep runs: a fixed number of times, or until its means are known precisely
//! enough.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::plan::model::compare::MetricName;
use crate::plan::model::shorthand::OneOrMany;
use crate::units::Share;

/// How often each cell runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeats {
    /// Maximum number of repeats of a cell. Without `until`, it is the exact number.
    pub at_most: u32,
    /// Precision of the means at which the repeats of a cell end early; `None` to run all repeats.
    pub until: Option<Share>,
    /// The metrics whose means must be known; empty for the default.
    pub metrics: OneOrMany<MetricName>,
}

/// How often each cell runs, as a table of a plan.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Repeats")]
struct Long {
    /// Maximum number of repeats of a cell. Without `until`, it is the exact number.
    #[schemars(range(min = 1), example = 12)]
    at_most: u32,
    /// End the repeats of a cell as soon as each mean over its runs is known this precisely, from the
    /// third run on: 2% means that the 95 % interval of the mean lies within 2 % of it. Which repeats
    /// are skipped depends on the measurements.
    #[serde(default)]
    #[schemars(example = &"2%")]
    until: Option<Share>,
    /// The metrics whose means must be known, under the names that `compare` uses. Default: output
    /// throughput and the percentiles that the plan's `slo` limits; without an `slo`, output throughput and
    /// the medians of TTFT and E2E; if the sweep measures server starts, the durations of the starts.
    #[serde(default)]
    metrics: OneOrMany<MetricName>,
}

impl Repeats {
    /// A fixed number of repeats for each cell.
    pub fn times(count: u32) -> Repeats {
        Repeats { at_most: count, until: None, metrics: OneOrMany::default() }
    }
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats::times(1)
    }
}

/// Serializes as a plain number if possible.
impl Serialize for Repeats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[serde_with::skip_serializing_none]
        #[derive(Serialize)]
        struct Table<'a> {
            until: Option<Share>,
            at_most: u32,
            metrics: Option<&'a OneOrMany<MetricName>>,
        }
        let metrics = Some(&self.metrics).filter(|metrics| !metrics.is_empty());
        match (self.until, metrics) {
            (None, None) => self.at_most.serialize(serializer),
            (until, metrics) => Table { until, at_most: self.at_most, metrics }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Repeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Repeats, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Repeats;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of repeats, or { until: 2%, at_most: 12 }")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Repeats, E> {
                let fits = u32::try_from(count);
                fits.map(Repeats::times).map_err(|_| E::invalid_value(Unexpected::Unsigned(count), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Repeats, A::Error> {
                let Long { at_most, until, metrics } = Long::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Repeats { at_most, until, metrics })
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for Repeats {
    fn schema_name() -> Cow<'static, str> {
        "RepeatsOrNumber".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let long = generator.subschema_for::<Long>();
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 4_294_967_295u32 }, long] })
    }
}
