//! `lengths` as the user writes it. A preset's name stands for `{ preset: NAME }` and a number for `{ constant: NUMBER }`;
//! the long form is made while reading. Whether it makes sense is for `check` to say.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::plan::model::data::length_pairs::LengthsFile;
use crate::plan::model::lengths::presets::{Preset, PresetFit};
use crate::plan::model::lengths::resolved::{Bucket, Distribution, Joint, Lengths, Range, Rows};
use crate::plan::model::lengths::table_rows::{
    WrittenBucket, WrittenJoint, WrittenPair, buckets_schema, joint_schema, pairs_schema,
};
use crate::units::Decimal;

/// How many tokens prompts and answers have: a preset, `prompt` and `output`, or a table of both.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WrittenLengths {
    /// A preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// How the preset is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<PresetFit>,
    /// Tokens of the user's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<WrittenDistribution>,
    /// Tokens asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<WrittenDistribution>,
    /// Pairs of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Vec<WrittenPair>>,
    /// Buckets of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Vec<WrittenJoint>>,
    /// The pairs of a data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<LengthsFile>,
}

/// How many tokens prompts and answers have, request by request: a preset, or `prompt` and `output` apart, or a table from
/// which both come together.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Lengths", extend("minProperties" = 1))]
struct Long {
    /// A kind of traffic: its lengths of prompts and answers.
    #[serde(default)]
    preset: Option<Preset>,
    /// How the preset's figures are read. Default lognormal.
    #[serde(default)]
    #[schemars(extend("default" = "lognormal"))]
    shape: Option<PresetFit>,
    /// Tokens of the user's text in one request (of one turn in a conversation).
    #[serde(default)]
    prompt: Option<WrittenDistribution>,
    /// Tokens asked for.
    #[serde(default)]
    output: Option<WrittenDistribution>,
    /// Pairs of prompt and output tokens, or a CSV file of them with the columns prompt, output and, if you like, weight.
    #[serde(default)]
    #[schemars(schema_with = "pairs_schema")]
    pairs: Option<Vec<WrittenPair>>,
    /// Buckets of both, or a CSV file of them with the columns prompt_min, prompt_max, output_min, output_max, weight.
    #[serde(default)]
    #[schemars(schema_with = "joint_schema")]
    histogram: Option<Vec<WrittenJoint>>,
    /// The pairs of a data set or trace, each as often as they come there.
    #[serde(default)]
    #[schemars(example = serde_json::json!({ "file": "data/sharegpt.json" }))]
    data: Option<LengthsFile>,
}

impl From<Long> for WrittenLengths {
    fn from(Long { preset, shape, prompt, output, pairs, histogram, data }: Long) -> Self {
        WrittenLengths { preset, shape, prompt, output, pairs, histogram, data }
    }
}

impl<'de> Deserialize<'de> for WrittenLengths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = WrittenLengths;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a preset like chat, or { prompt: …, output: … }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<WrittenLengths, E> {
                let preset = Preset::of_name(text).ok_or_else(|| E::unknown_variant(text, &Preset::NAMES))?;
                Ok(WrittenLengths { preset: Some(preset), ..WrittenLengths::default() })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenLengths, A::Error> {
                Long::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for WrittenLengths {
    fn schema_name() -> Cow<'static, str> {
        "PresetOrLengths".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Preset>(), generator.subschema_for::<Long>()] })
    }
}

/// How one count of tokens is drawn; exactly one of the fields is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WrittenDistribution {
    /// Always this many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant: Option<u32>,
    /// Any number of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uniform: Option<WrittenUniform>,
    /// A normal distribution, cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normal: Option<WrittenNormal>,
    /// A lognormal distribution, cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lognormal: Option<WrittenLognormal>,
    /// Buckets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Vec<WrittenBucket>>,
}

/// How one count of tokens is drawn.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Distribution", extend("minProperties" = 1, "maxProperties" = 1))]
struct LongDistribution {
    /// Always this many tokens; a number alone says the same.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4_000_000), example = 256)]
    constant: Option<u32>,
    /// Any number of tokens of a range, each as often as the others.
    #[serde(default)]
    #[schemars(example = serde_json::json!({ "min": 100, "max": 1000 }))]
    uniform: Option<WrittenUniform>,
    /// A normal distribution, cut to a range.
    #[serde(default)]
    #[schemars(example = serde_json::json!({ "mean": 500, "sd": 100, "min": 200, "max": 800 }))]
    normal: Option<WrittenNormal>,
    /// A lognormal distribution, cut to a range; by mean and standard deviation, or by median and sigma.
    #[serde(default)]
    #[schemars(example = serde_json::json!({ "mean": 500, "sd": 300, "min": 50, "max": 4000 }))]
    lognormal: Option<WrittenLognormal>,
    /// Buckets, or a CSV file of them with the columns min, max, weight.
    #[serde(default)]
    #[schemars(schema_with = "buckets_schema")]
    histogram: Option<Vec<WrittenBucket>>,
}

impl<'de> Deserialize<'de> for WrittenDistribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = WrittenDistribution;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of tokens, or a distribution like { uniform: { min: 100, max: 1000 } }")
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<WrittenDistribution, E> {
                let tokens = u32::try_from(value).map_err(|_| E::custom(format!("{value} is too large")))?;
                Ok(WrittenDistribution { constant: Some(tokens), ..WrittenDistribution::default() })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenDistribution, A::Error> {
                let long = LongDistribution::deserialize(MapAccessDeserializer::new(map))?;
                let LongDistribution { constant, uniform, normal, lognormal, histogram } = long;
                Ok(WrittenDistribution { constant, uniform, normal, lognormal, histogram })
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for WrittenDistribution {
    fn schema_name() -> Cow<'static, str> {
        "NumberOrDistribution".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let number = json_schema!({ "type": "integer", "minimum": 1, "maximum": 4_000_000, "examples": [256] });
        json_schema!({ "anyOf": [number, generator.subschema_for::<LongDistribution>()] })
    }
}

/// A range of tokens, each number as often as the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Uniform")]
pub struct WrittenUniform {
    /// The fewest tokens.
    #[schemars(example = 100)]
    pub min: u32,
    /// The most tokens.
    #[schemars(example = 1000)]
    pub max: u32,
}

/// A normal distribution, cut to a range: values outside of it never come, those inside as often as before against each
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Normal")]
pub struct WrittenNormal {
    /// Mean before the cut, in tokens.
    #[schemars(example = 500)]
    pub mean: Decimal,
    /// Standard deviation before the cut, in tokens.
    #[schemars(extend("exclusiveMinimum" = 0), example = 100)]
    pub sd: Decimal,
    /// The fewest tokens.
    #[schemars(example = 200)]
    pub min: u32,
    /// The most tokens.
    #[schemars(example = 800)]
    pub max: u32,
}

/// A lognormal distribution, cut to a range: by `mean` and `sd`, or by `median` and `sigma`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Lognormal")]
pub struct WrittenLognormal {
    /// Mean before the cut, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0), example = 500)]
    pub mean: Option<Decimal>,
    /// Standard deviation before the cut, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0), example = 300)]
    pub sd: Option<Decimal>,
    /// Median before the cut, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0), example = 400)]
    pub median: Option<Decimal>,
    /// Standard deviation of the logarithm, before the cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0), example = 0.8)]
    pub sigma: Option<Decimal>,
    /// The fewest tokens.
    #[schemars(example = 50)]
    pub min: u32,
    /// The most tokens.
    #[schemars(example = 4000)]
    pub max: u32,
}

impl WrittenDistribution {
    /// What runs carry of it; `None` where it says nothing that can be drawn, which `check` has told.
    pub fn resolve(&self) -> Option<Distribution> {
        let WrittenDistribution { constant, uniform, normal, lognormal, histogram } = self;
        let constant = constant.map(Distribution::Constant);
        let uniform = uniform.map(|WrittenUniform { min, max }| Distribution::Uniform(Range { min, max }));
        let normal = normal.map(|WrittenNormal { mean, sd, min, max }| Distribution::Normal {
            mean,
            sd,
            within: Range { min, max },
        });
        let lognormal = lognormal.as_ref().and_then(WrittenLognormal::resolve);
        let histogram = histogram.as_ref().map(|rows| {
            let row = |WrittenBucket { min, max, weight }: &WrittenBucket| Bucket {
                tokens: Range { min: *min, max: *max },
                weight: *weight,
            };
            Distribution::Histogram(Rows::new(rows.iter().map(row)))
        });
        constant.or(uniform).or(normal).or(lognormal).or(histogram).filter(|one| one.range().max > 0)
    }
}

impl WrittenLognormal {
    fn resolve(&self) -> Option<Distribution> {
        let WrittenLognormal { mean, sd, median, sigma, min, max } = *self;
        let within = Range { min, max };
        match (mean.zip(sd), median.zip(sigma)) {
            (Some((mean, sd)), _) => Some(Distribution::Lognormal { mean, sd, within }),
            (_, Some((median, sigma))) => Some(Distribution::LognormalMedian { median, sigma, within }),
            _ => None,
        }
    }
}

impl WrittenLengths {
    /// What runs carry of it; `None` where it says nothing that can be drawn, which `check` has told.
    pub fn resolve(&self) -> Option<Lengths> {
        let WrittenLengths { preset, shape, prompt, output, pairs, histogram, data } = self;
        if let Some(preset) = preset {
            return Some(preset.lengths(shape.unwrap_or_default()));
        }
        if let Some(data) = data {
            return data.lengths();
        }
        let joint = if let Some(pairs) = pairs {
            Rows::new(pairs.iter().map(|WrittenPair { prompt, output, weight }| Joint {
                prompt: Range::one(*prompt),
                output: Range::one(*output),
                weight: *weight,
            }))
        } else if let Some(buckets) = histogram {
            Rows::new(buckets.iter().map(|bucket| Joint {
                prompt: Range { min: bucket.prompt_min, max: bucket.prompt_max },
                output: Range { min: bucket.output_min, max: bucket.output_max },
                weight: bucket.weight,
            }))
        } else {
            let (prompt, output) = (prompt.as_ref()?.resolve()?, output.as_ref()?.resolve()?);
            return Some(Lengths::Each { prompt, output });
        };
        (!joint.rows().is_empty()).then_some(Lengths::Joint(joint))
    }
}
