//! `lengths` as written by the user. A preset's name stands for `{ preset: NAME }`, and a number for
//! `{ constant: NUMBER }`; reading creates the long form. `check` validates it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::data::length_pairs::LengthsFile;
use crate::plan::model::lengths::presets::{Preset, PresetFit};
use crate::plan::model::lengths::resolved::{Bucket, Distribution, Joint, Lengths, Range, Rows};
use crate::plan::model::lengths::table_rows::{
    WrittenBucket, WrittenJoint, WrittenPair, buckets_schema, joint_schema, pairs_schema,
};
use crate::units::Decimal;

/// Lengths of prompts and responses, request by request: a preset, or `prompt` and `output` separately,
/// or a table of both together.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Lengths")]
#[schemars(extend("minProperties" = 1))]
pub struct WrittenLengths {
    /// A kind of traffic, which determines the lengths of prompts and responses.
    pub preset: Option<Preset>,
    /// How the preset's figures are interpreted. Default lognormal.
    #[schemars(extend("default" = "lognormal"))]
    pub shape: Option<PresetFit>,
    /// Number of tokens in the user's text of one request, or of one turn in a conversation.
    pub prompt: Option<WrittenDistribution>,
    /// Requested output tokens.
    pub output: Option<WrittenDistribution>,
    /// Pairs of prompt and output tokens, or a CSV file of them with the columns prompt, output and,
    /// optionally, weight.
    #[serde(default)]
    #[schemars(schema_with = "pairs_schema")]
    pub pairs: Option<Vec<WrittenPair>>,
    /// Buckets of prompt and output tokens, or a CSV file of them with the columns prompt_min, prompt_max,
    /// output_min, output_max, weight.
    #[serde(default)]
    #[schemars(schema_with = "joint_schema")]
    pub histogram: Option<Vec<WrittenJoint>>,
    /// The pairs of a data set or trace, each as frequent as in the file.
    #[schemars(example = serde_json::json!({ "file": "data/sharegpt.json" }))]
    pub data: Option<LengthsFile>,
}

/// How a number of tokens is drawn; exactly one of the fields is set.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Distribution")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct WrittenDistribution {
    /// A constant number of tokens, which can also be written as a plain number.
    #[schemars(range(min = 1, max = 4_000_000), example = 256)]
    pub constant: Option<u32>,
    /// A uniform distribution over a range of tokens.
    #[schemars(example = serde_json::json!({ "min": 100, "max": 1000 }))]
    pub uniform: Option<WrittenUniform>,
    /// A normal distribution, truncated to a range.
    #[schemars(example = serde_json::json!({ "mean": 500, "sd": 100, "min": 200, "max": 800 }))]
    pub normal: Option<WrittenNormal>,
    /// A lognormal distribution, truncated to a range; by mean and standard deviation, or by median and
    /// sigma.
    #[schemars(example = serde_json::json!({ "mean": 500, "sd": 300, "min": 50, "max": 4000 }))]
    pub lognormal: Option<WrittenLognormal>,
    /// Buckets, or a CSV file of them with the columns min, max, weight.
    #[serde(default)]
    #[schemars(schema_with = "buckets_schema")]
    pub histogram: Option<Vec<WrittenBucket>>,
}

/// A uniform distribution over a range of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Uniform")]
pub struct WrittenUniform {
    /// The minimum number of tokens.
    #[schemars(example = 100)]
    pub min: u32,
    /// The maximum number of tokens.
    #[schemars(example = 1000)]
    pub max: u32,
}

/// A normal distribution, truncated to a range: values outside it never occur, those inside keep their
/// relative frequencies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Normal")]
pub struct WrittenNormal {
    /// Mean before truncation, in tokens.
    #[schemars(example = 500)]
    pub mean: Decimal,
    /// Standard deviation before truncation, in tokens.
    #[schemars(extend("exclusiveMinimum" = 0), example = 100)]
    pub sd: Decimal,
    /// The minimum number of tokens.
    #[schemars(example = 200)]
    pub min: u32,
    /// The maximum number of tokens.
    #[schemars(example = 800)]
    pub max: u32,
}

/// A lognormal distribution, truncated to a range: by `mean` and `sd`, or by `median` and `sigma`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Lognormal")]
pub struct WrittenLognormal {
    /// Mean before truncation, in tokens.
    #[schemars(extend("exclusiveMinimum" = 0), example = 500)]
    pub mean: Option<Decimal>,
    /// Standard deviation before truncation, in tokens.
    #[schemars(extend("exclusiveMinimum" = 0), example = 300)]
    pub sd: Option<Decimal>,
    /// Median before truncation, in tokens.
    #[schemars(extend("exclusiveMinimum" = 0), example = 400)]
    pub median: Option<Decimal>,
    /// Standard deviation of the logarithm, before truncation.
    #[schemars(extend("exclusiveMinimum" = 0), example = 0.8)]
    pub sigma: Option<Decimal>,
    /// The minimum number of tokens.
    #[schemars(example = 50)]
    pub min: u32,
    /// The maximum number of tokens.
    #[schemars(example = 4000)]
    pub max: u32,
}

impl WrittenDistribution {
    /// The distribution as part of a run; `None` if it is invalid, which `check` has reported.
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
    /// The lengths as part of a run; `None` if they are invalid, which `check` has reported.
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
