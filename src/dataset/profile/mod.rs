//! Anonymous profiles: the characteristics of traffic, without its texts, its users or its dates.
//!
//! A profile contains counts over ranges, never the figures of a single record. Every range covers at least
//! `k` requests (k-anonymity), and values that are too rare for any range are omitted and only counted. It
//! contains no text, no id, no name and no date; times are durations. Its only words are the field names of
//! the types below.

mod build;
mod lengths;
mod merge;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use build::{Profiler, TooFew};

/// The version of the profile format.
pub(crate) const PROFILE_VERSION: u32 = 1;

/// An anonymous profile of traffic.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The version of this format: 1.
    pub sweepline_profile: u32,
    /// Every range of this profile covers at least this many requests.
    pub k: u32,
    /// Number of requests in the profile.
    pub requests: u64,
    /// Joint distribution of prompt and response lengths.
    pub lengths: Lengths,
    /// Arrivals of requests; absent if the file has no times.
    pub arrivals: Option<Arrivals>,
    /// Common beginnings of prompts; absent if unknown.
    pub prefixes: Option<Prefixes>,
    /// Number of turns in conversations; absent if the file has no conversations.
    pub turns: Option<Turns>,
}

/// Joint distribution of prompt and response lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// Number of requests whose token counts are declared in the file; for the others, the counts are
    /// estimated as characters / 4.
    pub declared: u64,
    /// Ranges of prompt and response tokens. Fine ranges that are too rare are merged into coarser ones, so
    /// ranges may overlap. Each request is counted in only one of them.
    pub buckets: Vec<LengthBucket>,
    /// Number of requests whose lengths are too rare for any range.
    pub suppressed: u64,
}

/// Requests of similar length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthBucket {
    /// The minimum and maximum number of prompt tokens in the request alone, without the history of a
    /// conversation.
    pub prompt: [u32; 2],
    /// The minimum and maximum number of response tokens; absent if the file does not contain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<[u32; 2]>,
    /// Number of requests.
    pub requests: u64,
}

/// Arrivals of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Time from the first request to the last, in seconds.
    pub seconds: f64,
    /// Coefficient of variation of the gaps between requests: 0 for a constant rate, 1 for a Poisson
    /// process.
    pub gap_cv: f64,
    /// The rate over time, in consecutive periods.
    pub stretches: Vec<Stretch>,
}

/// A period of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// The duration of the period, in seconds.
    pub seconds: f64,
    /// Number of requests in the period.
    pub requests: u64,
}

/// Common beginnings of prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prefixes {
    /// Number of tokens in a block. Shorter common beginnings are not detected.
    pub(crate) block_tokens: u32,
    /// Number of requests whose beginnings are known.
    pub requests: u64,
    /// The share of prompt tokens that repeat the beginning of an earlier prompt, among the requests whose
    /// beginnings are known. An unlimited prefix cache could serve this share.
    pub reusable_share: f64,
    /// Groups of requests with the same first block, by the size of the group.
    pub classes: Vec<PrefixClass>,
    /// Number of requests in groups whose sizes are too rare for any class.
    pub suppressed: u64,
}

/// Groups of similar size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefixClass {
    /// The minimum and maximum number of requests in a group.
    pub size: [u64; 2],
    /// Number of groups.
    pub groups: u64,
    /// Number of requests in the groups of this class.
    pub requests: u64,
    /// Average number of leading prompt tokens that a request has in common with an earlier request of its
    /// group, over all requests except the first of each group.
    pub shared_tokens: u32,
}

/// Number of turns in conversations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// Ranges of turns.
    pub buckets: Vec<TurnBucket>,
    /// Number of conversations whose number of turns is too rare for any range.
    pub suppressed: u64,
    /// Whether turns are separate entries in the file, so that the lengths of later turns include
    /// the history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_history: bool,
}

/// Conversations of similar length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnBucket {
    /// The minimum and maximum number of turns; each turn is a request of the conversation.
    pub turns: [u64; 2],
    /// Number of conversations.
    pub conversations: u64,
}
