//! Lengths as part of a run: without shorthand and presets, with tables in memory and exact numbers.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::units::Decimal;

/// The numbers of tokens that the prompts and responses of a run have, request by request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// Prompt and response are drawn independently.
    Each {
        /// Tokens of the user's text.
        prompt: Distribution,
        /// Requested output tokens.
        output: Distribution,
    },
    /// Prompt and response are drawn from the same row of a table, so that their dependence is preserved.
    Joint(Rows<Joint>),
}

/// How a number of tokens is drawn. Bounds are whole tokens and inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Always this many tokens.
    Constant(u32),
    /// A uniform distribution over a range.
    Uniform(Range),
    /// A normal distribution, truncated to a range.
    Normal {
        /// Mean before truncation.
        mean: Decimal,
        /// Standard deviation before truncation.
        sd: Decimal,
        /// The bounds of the truncation.
        within: Range,
    },
    /// A lognormal distribution with this mean and standard deviation, truncated to a range.
    Lognormal {
        /// Mean before truncation.
        mean: Decimal,
        /// Standard deviation before truncation.
        sd: Decimal,
        /// The bounds of the truncation.
        within: Range,
    },
    /// A lognormal distribution with this median and sigma, truncated to a range.
    LognormalMedian {
        /// Median before truncation.
        median: Decimal,
        /// Standard deviation of the logarithm before truncation.
        sigma: Decimal,
        /// The bounds of the truncation.
        within: Range,
    },
    /// A histogram: a bucket is drawn by its weight, then a number of tokens uniformly from the bucket.
    Histogram(Rows<Bucket>),
}

/// Whole tokens from `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    /// The minimum number of tokens.
    pub min: u32,
    /// The maximum number of tokens.
    pub max: u32,
}

/// One bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bucket {
    /// The range of tokens.
    pub tokens: Range,
    /// How often this row occurs, relative to the sum of all weights.
    pub weight: Decimal,
}

/// One row of a joint table; a pair of lengths is a row whose ranges contain one number each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Joint {
    /// Tokens of the user's text.
    pub prompt: Range,
    /// Requested output tokens.
    pub output: Range,
    /// How often this row occurs, relative to the sum of all weights.
    pub weight: Decimal,
}

/// A row of a table of lengths.
pub trait Row: Copy {
    /// Relative frequency of the row.
    fn weight(&self) -> Decimal;
    /// The content of the row as text. Two rows are equal if their texts are equal.
    fn canonical(&self) -> String;
}

impl Row for Bucket {
    fn weight(&self) -> Decimal {
        self.weight
    }
    fn canonical(&self) -> String {
        format!("{} {}", self.tokens, self.weight)
    }
}

impl Row for Joint {
    fn weight(&self) -> Decimal {
        self.weight
    }
    fn canonical(&self) -> String {
        format!("{} {} {}", self.prompt, self.output, self.weight)
    }
}

/// The rows of a table, shared between all runs that draw from it, with a digest that represents them in
/// comparisons.
#[derive(Debug, Clone)]
pub struct Rows<T> {
    rows: Arc<[T]>,
    digest: Arc<str>,
}

impl<T: Row> Rows<T> {
    /// Creates a table of these rows, without rows of weight 0.
    pub fn new(rows: impl IntoIterator<Item = T>) -> Rows<T> {
        let rows: Arc<[T]> = rows.into_iter().filter(|row| row.weight().is_positive()).collect();
        let mut hash = Sha256::new_with_prefix(b"sweepline lengths 1\0");
        for row in rows.iter() {
            hash.update(row.canonical());
            hash.update(b"\n");
        }
        let digest = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Rows { rows, digest: digest.into() }
    }
}

impl<T> Rows<T> {
    /// The rows, in the order of the file.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// SHA-256 of the content of all rows, as 64 hex digits. An inline table and the same table in a
    /// file have the same digest.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl<T> PartialEq for Rows<T> {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl<T> Eq for Rows<T> {}

impl<T> Hash for Rows<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl<T: Serialize> Serialize for Rows<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.rows.serialize(serializer)
    }
}

impl<'de, T: Row + Deserialize<'de>> Deserialize<'de> for Rows<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Rows::new)
    }
}

impl Range {
    /// A range that contains one number.
    pub const fn one(tokens: u32) -> Range {
        Range { min: tokens, max: tokens }
    }
}

impl Distribution {
    /// Minimum and maximum number of tokens that can occur.
    pub fn range(&self) -> Range {
        match self {
            Distribution::Constant(tokens) => Range::one(*tokens),
            Distribution::Uniform(within)
            | Distribution::Normal { within, .. }
            | Distribution::Lognormal { within, .. }
            | Distribution::LognormalMedian { within, .. } => *within,
            Distribution::Histogram(rows) => around(rows.rows().iter().map(|row| row.tokens)),
        }
    }
}

/// The smallest range that contains all of `ranges`.
fn around(ranges: impl Iterator<Item = Range>) -> Range {
    let both = |all: Range, one: Range| Range { min: all.min.min(one.min), max: all.max.max(one.max) };
    ranges.reduce(both).unwrap_or(Range::one(0))
}

impl Lengths {
    /// Minimum and maximum number of tokens that a prompt may have.
    pub(crate) fn prompt_range(&self) -> Range {
        match self {
            Lengths::Each { prompt, .. } => prompt.range(),
            Lengths::Joint(rows) => around(rows.rows().iter().map(|row| row.prompt)),
        }
    }

    /// Minimum and maximum number of output tokens that may be requested.
    pub(crate) fn output_range(&self) -> Range {
        match self {
            Lengths::Each { output, .. } => output.range(),
            Lengths::Joint(rows) => around(rows.rows().iter().map(|row| row.output)),
        }
    }

    /// The same lengths, but all prompts have one length.
    pub(crate) fn with_prompt(&self, tokens: u32) -> Lengths {
        match self {
            Lengths::Each { output, .. } => {
                Lengths::Each { prompt: Distribution::Constant(tokens), output: output.clone() }
            }
            Lengths::Joint(rows) => {
                Lengths::Joint(Rows::new(rows.rows().iter().map(|row| Joint { prompt: Range::one(tokens), ..*row })))
            }
        }
    }

    /// The same lengths, but all responses have one length.
    pub(crate) fn with_output(&self, tokens: u32) -> Lengths {
        match self {
            Lengths::Each { prompt, .. } => {
                Lengths::Each { prompt: prompt.clone(), output: Distribution::Constant(tokens) }
            }
            Lengths::Joint(rows) => {
                Lengths::Joint(Rows::new(rows.rows().iter().map(|row| Joint { output: Range::one(tokens), ..*row })))
            }
        }
    }

    /// Whether, in effect, all requests have the same lengths.
    pub(crate) fn is_constant(&self) -> bool {
        let one = |range: Range| range.min == range.max;
        one(self.prompt_range()) && one(self.output_range())
    }
}

impl fmt::Display for Range {
    /// Formats the range as `50..4000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.min, self.max)
    }
}

impl fmt::Display for Distribution {
    /// Formats the full distribution, with digests for tables: `lognormal mean 500 sd 300 within 50..4000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Constant(tokens) => write!(f, "{tokens}"),
            Distribution::Uniform(within) => write!(f, "uniform within {within}"),
            Distribution::Normal { mean, sd, within } => write!(f, "normal mean {mean} sd {sd} within {within}"),
            Distribution::Lognormal { mean, sd, within } => write!(f, "lognormal mean {mean} sd {sd} within {within}"),
            Distribution::LognormalMedian { median, sigma, within } => {
                write!(f, "lognormal median {median} sigma {sigma} within {within}")
            }
            Distribution::Histogram(rows) => {
                write!(f, "histogram of {} within {}, sha256:{}", rows.rows().len(), self.range(), rows.digest())
            }
        }
    }
}

impl fmt::Display for Lengths {
    /// Formats the lengths as `lognormal mean 500 sd 300 within 50..4000 → 256`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lengths::Each { prompt, output } => write!(f, "{prompt} → {output}"),
            Lengths::Joint(rows) => {
                let (prompt, output) = (self.prompt_range(), self.output_range());
                write!(f, "table of {} within {prompt} → {output}, sha256:{}", rows.rows().len(), rows.digest())
            }
        }
    }
}
