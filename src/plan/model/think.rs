//! Think time: how long a user reads and writes between a response and the next turn. It is one
//! duration, or a distribution from which each turn draws.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::units::{Nanos, UnitError};

/// How long a user thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// A truncated exponential distribution.
    Exponential(Exponential),
    /// A truncated lognormal distribution.
    Lognormal(Lognormal),
    /// A uniform distribution over a range.
    Uniform(Uniform),
    /// Always the same duration.
    #[serde(untagged)]
    Constant(Nanos),
}

/// A truncated exponential distribution: most turns come soon, a few much later.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThinkExponential")]
pub struct Exponential {
    /// Mean before truncation.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub mean: Nanos,
    /// Lower bound: shorter times are not drawn. Default: 0s.
    #[schemars(example = &"1s")]
    pub min: Option<Nanos>,
    /// Upper bound: longer times are not drawn. Default: no bound.
    #[schemars(example = &"60s")]
    pub max: Option<Nanos>,
}

/// A truncated lognormal distribution with this mean and standard deviation. Human pauses typically have this
/// distribution.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThinkLognormal")]
pub struct Lognormal {
    /// Mean before truncation.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub mean: Nanos,
    /// Standard deviation before truncation.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub sd: Nanos,
    /// Lower bound: shorter times are not drawn. Default: 0s.
    #[schemars(example = &"1s")]
    pub min: Option<Nanos>,
    /// Upper bound: longer times are not drawn. Default: no bound.
    #[schemars(example = &"60s")]
    pub max: Option<Nanos>,
}

/// A uniform distribution over a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThinkUniform")]
pub struct Uniform {
    /// The shortest time.
    #[schemars(example = &"2s")]
    pub min: Nanos,
    /// The longest time.
    #[schemars(example = &"10s")]
    pub max: Nanos,
}

/// Think time, which is drawn again for each turn. Exactly one of the fields is given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Think", extend("minProperties" = 1, "maxProperties" = 1))]
struct Long {
    /// Exponential: many short pauses, few long ones.
    #[schemars(example = serde_json::json!({ "mean": "8s", "max": "60s" }))]
    exponential: Option<Exponential>,
    /// Lognormal: most pauses near one length, with a long tail.
    #[schemars(example = serde_json::json!({ "mean": "8s", "sd": "6s", "min": "1s", "max": "60s" }))]
    lognormal: Option<Lognormal>,
    /// Uniform: all times of a range are equally likely.
    #[schemars(example = serde_json::json!({ "min": "2s", "max": "10s" }))]
    uniform: Option<Uniform>,
}

impl Think {
    /// The time; `None` if it is not constant.
    pub fn constant(&self) -> Option<Nanos> {
        if let Think::Constant(time) = self { Some(*time) } else { None }
    }

    /// The name of the distribution in plans.
    pub(crate) fn law(&self) -> &'static str {
        match self {
            Think::Constant(_) => "constant",
            Think::Exponential(_) => "exponential",
            Think::Lognormal(_) => "lognormal",
            Think::Uniform(_) => "uniform",
        }
    }

    /// The mean think time; for a truncated distribution, the mean before truncation.
    pub fn mean(&self) -> Nanos {
        match *self {
            Think::Constant(time) => time,
            Think::Exponential(Exponential { mean, .. }) | Think::Lognormal(Lognormal { mean, .. }) => mean,
            Think::Uniform(Uniform { min, max }) => Nanos(min.0 / 2 + max.0 / 2),
        }
    }

    /// The first invalid field, with the problem and the remedy; `None` if all fields are valid.
    pub fn mistake(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let (mean, min, max) = match *self {
            Think::Constant(_) => return None,
            Think::Uniform(Uniform { min, max }) => {
                return (min > max).then_some(("max", "is shorter than `min`", "write the shorter one as `min`"));
            }
            Think::Exponential(Exponential { mean, min, max }) => (mean, min, max),
            Think::Lognormal(Lognormal { mean, sd, .. }) if mean > Nanos::ZERO && sd == Nanos::ZERO => {
                return Some(("sd", "must be longer than 0s", "write `think: 8s` for a constant time"));
            }
            Think::Lognormal(Lognormal { mean, min, max, .. }) => (mean, min, max),
        };
        let (min, max) = (min.unwrap_or(Nanos::ZERO), max.unwrap_or(Nanos(u64::MAX)));
        if mean == Nanos::ZERO {
            return Some(("mean", "must be longer than 0s", "remove `think` for no think time"));
        }
        if min >= max {
            return Some(("max", "must be longer than `min`", "write the shorter one as `min`"));
        }
        // If the mean lies within the bounds, a sufficient share of the draws does too.
        (mean < min || mean > max).then_some((
            "mean",
            "must lie between `min` and `max`",
            "move the bounds or the mean",
        ))
    }
}

impl fmt::Display for Think {
    /// Formats the think time as written in a plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds = |f: &mut fmt::Formatter<'_>, min: Option<Nanos>, max: Option<Nanos>| {
            min.iter().try_for_each(|min| write!(f, ", min: {min}"))?;
            max.iter().try_for_each(|max| write!(f, ", max: {max}"))?;
            f.write_str(" } }")
        };
        match self {
            Think::Constant(time) => write!(f, "{time}"),
            Think::Exponential(Exponential { mean, min, max }) => {
                write!(f, "{{ exponential: {{ mean: {mean}")?;
                bounds(f, *min, *max)
            }
            Think::Lognormal(Lognormal { mean, sd, min, max }) => {
                write!(f, "{{ lognormal: {{ mean: {mean}, sd: {sd}")?;
                bounds(f, *min, *max)
            }
            Think::Uniform(Uniform { min, max }) => write!(f, "{{ uniform: {{ min: {min}, max: {max} }} }}"),
        }
    }
}

impl<'de> Deserialize<'de> for Think {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Think;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration like 5s, or { lognormal: { mean: 8s, sd: 6s } }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Think, E> {
                text.parse().map(Think::Constant).map_err(|error: UnitError| E::custom(error.0))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Think, E> {
                self.visit_str(&value.to_string())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Think, A::Error> {
                let Long { exponential, lognormal, uniform } = Long::deserialize(MapAccessDeserializer::new(map))?;
                match (exponential, lognormal, uniform) {
                    (Some(exponential), None, None) => Ok(Think::Exponential(exponential)),
                    (None, Some(lognormal), None) => Ok(Think::Lognormal(lognormal)),
                    (None, None, Some(uniform)) => Ok(Think::Uniform(uniform)),
                    _ => Err(de::Error::custom(
                        "`think` takes one distribution: write one of exponential, lognormal and uniform",
                    )),
                }
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for Think {
    fn schema_name() -> Cow<'static, str> {
        "ThinkOrDuration".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Nanos>(), generator.subschema_for::<Long>()] })
    }
}
