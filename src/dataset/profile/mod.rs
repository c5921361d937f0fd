//! Anonymous profiles: what traffic is like, without what was said, who said it, or when.
//!
//! A profile holds counts over ranges, never a record's own figures: every range stands for at least `k` requests
//! (k-anonymity), and what is too rare for any range is left out and only counted. It holds no text, no id, no name, no
//! date; times are lengths of time. All of its words are those of the types below.

mod build;
mod lengths;
mod merge;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use build::{Profiler, TooFew};

/// The version of the form.
pub(crate) const PROFILE_VERSION: u32 = 1;

/// An anonymous profile of traffic.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The version of this form: 1.
    pub sweepline_profile: u32,
    /// Every range of this profile stands for at least so many requests.
    pub k: u32,
    /// Requests that the profile was made of.
    pub requests: u64,
    /// How long prompts and answers are, together.
    pub lengths: Lengths,
    /// When requests came; absent where the file has no times.
    pub arrivals: Option<Arrivals>,
    /// What prompts share at their beginnings; absent where nothing is known of it.
    pub prefixes: Option<Prefixes>,
    /// How many turns conversations have; absent where the file has none.
    pub turns: Option<Turns>,
}

/// How long prompts and answers are, together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// Requests whose tokens the file declares; those of the others are estimated as characters / 4.
    pub declared: u64,
    /// Ranges of prompt and answer tokens. Where fine ranges are too rare they are merged to coarser ones, so ranges may
    /// overlap: each request is counted in one.
    pub buckets: Vec<LengthBucket>,
    /// Requests too rare for any range.
    pub suppressed: u64,
}

/// Requests of like length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthBucket {
    /// The least and the most prompt tokens, of the request alone: the history of a conversation comes on top.
    pub prompt: [u32; 2],
    /// The least and the most answer tokens; absent where the file does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<[u32; 2]>,
    /// How many requests.
    pub requests: u64,
}

/// When requests came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Seconds from the first request to the last.
    pub seconds: f64,
    /// Coefficient of variation of the gaps between requests: 0 is a constant rate, 1 a Poisson process.
    pub gap_cv: f64,
    /// The rate over time, in stretches that follow each other.
    pub stretches: Vec<Stretch>,
}

/// A stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// How long it is, in seconds.
    pub seconds: f64,
    /// How many requests came in it.
    pub requests: u64,
}

/// What prompts share at their beginnings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prefixes {
    /// Tokens of a block: less than one is not seen to be shared.
    pub(crate) block_tokens: u32,
    /// Requests whose beginnings are known.
    pub requests: u64,
    /// Share of their prompt tokens that an earlier request began with: what an endless prefix cache could give back.
    pub reusable_share: f64,
    /// Groups of requests with the same first block, by how many requests a group has.
    pub classes: Vec<PrefixClass>,
    /// Requests in groups too rare for any class.
    pub suppressed: u64,
}

/// Groups of like size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefixClass {
    /// The least and the most requests of a group.
    pub size: [u64; 2],
    /// How many groups.
    pub groups: u64,
    /// Requests in them.
    pub requests: u64,
    /// Leading prompt tokens that a request has in common with an earlier one of its group, on average over all but the
    /// first of each group.
    pub shared_tokens: u32,
}

/// How many turns conversations have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// Ranges of turns.
    pub buckets: Vec<TurnBucket>,
    /// Conversations too rare for any range.
    pub suppressed: u64,
    /// Turns are entries of their own in the file, so that the lengths of later ones have the history in them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_history: bool,
}

/// Conversations of like length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnBucket {
    /// The least and the most turns: requests of the conversation.
    pub turns: [u64; 2],
    /// How many conversations.
    pub conversations: u64,
}
