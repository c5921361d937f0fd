//! `lengths` of a scenario: how many tokens prompts and answers have, where that differs from request to request.
//!
//! What the user writes (here), what runs carry (`resolved`), the presets, and tables that stand in files of their own.
//! How a length is drawn is not known here: `workload` does it.

pub mod lengths_field;
pub mod presets;
pub mod resolved;
pub mod table_rows;

pub use crate::plan::model::lengths::lengths_field::{
    WrittenDistribution, WrittenLengths, WrittenLognormal, WrittenNormal, WrittenUniform,
};
pub use crate::plan::model::lengths::presets::{Preset, PresetFit};
pub use crate::plan::model::lengths::resolved::{Bucket, Distribution, Joint, Lengths, Range, Row, Rows};
pub use crate::plan::model::lengths::table_rows::{WrittenBucket, WrittenJoint, WrittenPair};

/// The fewest tokens of a prompt: its nonce needs room.
pub const LEAST_PROMPT: u32 = 16;

/// The fewest tokens that can be asked for.
pub const LEAST_OUTPUT: u32 = 1;

/// The most tokens of either.
pub const MOST_TOKENS: u32 = 4_000_000;
