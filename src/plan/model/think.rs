//! Think time: how long a user reads and writes between an answer and the next turn. One duration, or a distribution of
//! which each turn draws its own.

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
    /// An exponential distribution, cut.
    Exponential(Exponential),
    /// A lognormal distribution, cut.
    Lognormal(Lognormal),
    /// Any time of a range.
    Uniform(Uniform),
    /// Always as long.
    #[serde(untagged)]
    Constant(Nanos),
}

/// An exponential distribution, cut: most turns come soon, a few much later.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThinkExponential")]
pub struct Exponential {
    /// Mean before the cut.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub mean: Nanos,
    /// What is shorter is not drawn. Default: 0s.
    #[schemars(example = &"1s")]
    pub min: Option<Nanos>,
    /// What is longer is not drawn. Default: no bound.
    #[schemars(example = &"60s")]
    pub max: Option<Nanos>,
}

/// A lognormal distribution with this mean and standard deviation, cut: what people's pauses look like.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThinkLognormal")]
pub struct Lognormal {
    /// Mean before the cut.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub mean: Nanos,
    /// Standard deviation before the cut.
    #[schemars(schema_with = "crate::plan::model::field_schema::above_zero")]
    pub sd: Nanos,
    /// What is shorter is not drawn. Default: 0s.
    #[schemars(example = &"1s")]
    pub min: Option<Nanos>,
    /// What is longer is not drawn. Default: no bound.
    #[schemars(example = &"60s")]
    pub max: Option<Nanos>,
}

/// Any time of a range, each as often as the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThinkUniform")]
pub struct Uniform {
    /// The shortest.
    #[schemars(example = &"2s")]
    pub min: Nanos,
    /// The longest.
    #[schemars(example = &"10s")]
    pub max: Nanos,
}

/// Think time, drawn anew for each turn: exactly one of the fields is given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Think", extend("minProperties" = 1, "maxProperties" = 1))]
struct Long {
    /// Exponential: many short pauses, few long ones.
    #[schemars(example = serde_json::json!({ "mean": "8s", "max": "60s" }))]
    exponential: Option<Exponential>,
    /// Lognormal: most pauses near one length, a long tail.
    #[schemars(example = serde_json::json!({ "mean": "8s", "sd": "6s", "min": "1s", "max": "60s" }))]
    lognormal: Option<Lognormal>,
    /// Uniform: any time of a range, each as often as the others.
    #[schemars(example = serde_json::json!({ "min": "2s", "max": "10s" }))]
    uniform: Option<Uniform>,
}

impl Think {
    /// The time where it is always the same.
    pub fn constant(&self) -> Option<Nanos> {
        if let Think::Constant(time) = self { Some(*time) } else { None }
    }

    /// The name of its distribution in plans.
    pub(crate) fn law(&self) -> &'static str {
        match self {
            Think::Constant(_) => "constant",
            Think::Exponential(_) => "exponential",
            Think::Lognormal(_) => "lognormal",
            Think::Uniform(_) => "uniform",
        }
    }

    /// Its mean; of a distribution that is cut, before the cut.
    pub fn mean(&self) -> Nanos {
        match *self {
            Think::Constant(time) => time,
            Think::Exponential(Exponential { mean, .. }) | Think::Lognormal(Lognormal { mean, .. }) => mean,
            Think::Uniform(Uniform { min, max }) => Nanos(min.0 / 2 + max.0 / 2),
        }
    }

    /// The field that no distribution can have so, what is wrong with it, and what to do.
    pub fn mistake(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let (mean, min, max) = match *self {
            Think::Constant(_) => return None,
            Think::Uniform(Uniform { min, max }) => {
                return (min > max).then_some(("max", "is shorter than `min`", "write the shorter one as `min`"));
            }
            Think::Exponential(Exponential { mean, min, max }) => (mean, min, max),
            Think::Lognormal(Lognormal { mean, sd, .. }) if mean > Nanos::ZERO && sd == Nanos::ZERO => {
                return Some(("sd", "must be longer than 0s", "write `think: 8s` for a time that is always the same"));
            }
            Think::Lognormal(Lognormal { mean, min, max, .. }) => (mean, min, max),
        };
        let (min, max) = (min.unwrap_or(Nanos::ZERO), max.unwrap_or(Nanos(u64::MAX)));
        if mean == Nanos::ZERO {
            return Some(("mean", "must be longer than 0s", "leave `think` out where nobody thinks"));
        }
        if min >= max {
            return Some(("max", "must be longer than `min`", "write the shorter one as `min`"));
        }
        // So a good part of all draws lies inside the cut.
        (mean < min || mean > max).then_some((
            "mean",
            "must lie between `min` and `max`",
            "move the bounds or the mean",
        ))
    }
}

impl fmt::Display for Think {
    /// As a plan writes it.
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
                        "`think` is drawn from one distribution: write one of exponential, lognormal and uniform",
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
