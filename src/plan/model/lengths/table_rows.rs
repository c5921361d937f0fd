//! Rows of tables of lengths as written by the user, in the plan or in a separate CSV file.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::units::Decimal;

/// One bucket of a histogram: a range of tokens, both ends included, in which all numbers are equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Bucket")]
pub struct WrittenBucket {
    /// The minimum number of tokens.
    #[schemars(example = 100)]
    pub min: u32,
    /// The maximum number of tokens.
    #[schemars(example = 199)]
    pub max: u32,
    /// How often this row occurs, relative to the sum of all weights.
    #[schemars(extend("minimum" = 0), example = 12)]
    pub weight: Decimal,
}

/// One bucket of prompt and output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "JointBucket")]
pub struct WrittenJoint {
    /// The minimum number of prompt tokens.
    #[schemars(example = 100)]
    pub prompt_min: u32,
    /// The maximum number of prompt tokens.
    #[schemars(example = 199)]
    pub prompt_max: u32,
    /// The minimum number of output tokens.
    #[schemars(example = 1)]
    pub output_min: u32,
    /// The maximum number of output tokens.
    #[schemars(example = 49)]
    pub output_max: u32,
    /// How often this row occurs, relative to the sum of all weights.
    #[schemars(extend("minimum" = 0), example = 12)]
    pub weight: Decimal,
}

/// One pair of lengths: `[256, 1024]`, `[256, 1024, 3]` with a weight, or `{ prompt: 256, output: 1024, weight: 3 }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WrittenPair {
    /// Tokens of the user's text.
    pub prompt: u32,
    /// Requested output tokens.
    pub output: u32,
    /// How often this row occurs, relative to the sum of all weights. Default 1.
    pub weight: Decimal,
}

/// One pair of lengths.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Pair")]
struct LongPair {
    /// Tokens of the user's text.
    #[schemars(range(min = 16), example = 256)]
    prompt: u32,
    /// Requested output tokens.
    #[schemars(range(min = 1), example = 1024)]
    output: u32,
    /// How often this row occurs, relative to the sum of all weights. Default 1.
    #[serde(default)]
    #[schemars(extend("minimum" = 0, "default" = 1))]
    weight: Option<Decimal>,
}

impl From<LongPair> for WrittenPair {
    fn from(LongPair { prompt, output, weight }: LongPair) -> Self {
        WrittenPair { prompt, output, weight: weight.unwrap_or(Decimal::new(1, 0)) }
    }
}

impl<'de> Deserialize<'de> for WrittenPair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = WrittenPair;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("prompt and output tokens, like [256, 1024] or [256, 1024, 3] with a weight")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<WrittenPair, A::Error> {
                let (Some(prompt), Some(output)) = (seq.next_element()?, seq.next_element()?) else {
                    return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
                };
                let weight = seq.next_element()?;
                if seq.next_element::<de::IgnoredAny>()?.is_some() {
                    return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
                }
                Ok(LongPair { prompt, output, weight }.into())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenPair, A::Error> {
                LongPair::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for WrittenPair {
    fn schema_name() -> Cow<'static, str> {
        "PairOrList".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = json_schema!({
            "type": "array",
            "items": { "type": "number" },
            "minItems": 2,
            "maxItems": 3,
            "examples": [[256, 1024]],
        });
        json_schema!({ "anyOf": [list, generator.subschema_for::<LongPair>()] })
    }
}

/// The schema of a list, or of the path of a CSV file that contains the list.
fn list_or_file<T: JsonSchema>(generator: &mut SchemaGenerator, example: &str) -> Schema {
    let rows = json_schema!({ "type": "array", "minItems": 1, "items": generator.subschema_for::<T>() });
    let file = json_schema!({ "type": "string", "examples": [example] });
    json_schema!({ "anyOf": [rows, file] })
}

pub(super) fn pairs_schema(generator: &mut SchemaGenerator) -> Schema {
    list_or_file::<WrittenPair>(generator, "pairs.csv")
}

pub(super) fn buckets_schema(generator: &mut SchemaGenerator) -> Schema {
    list_or_file::<WrittenBucket>(generator, "prompts.csv")
}

pub(super) fn joint_schema(generator: &mut SchemaGenerator) -> Schema {
    list_or_file::<WrittenJoint>(generator, "lengths.csv")
}
