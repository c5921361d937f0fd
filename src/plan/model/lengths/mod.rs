//! `lengths` of a scenario: how many tokens prompts and responses have, if this varies between requests.
//!
//! The written form (here), the resolved form of runs (`resolved`), the presets, and tables in separate
//! files. Drawing lengths is not implemented here but in `workload`.

pub(crate) mod lengths_field;
pub mod presets;
pub mod resolved;
pub(crate) mod table_rows;

pub use crate::plan::model::lengths::lengths_field::WrittenLengths;
pub use crate::plan::model::lengths::presets::Preset;
#[cfg(test)]
pub(crate) use crate::plan::model::lengths::presets::PresetFit;
pub(crate) use crate::plan::model::lengths::resolved::Joint;
pub use crate::plan::model::lengths::resolved::{Bucket, Distribution, Lengths, Range, Row, Rows};

/// Minimum number of tokens in a prompt, because its nonce needs space.
pub(crate) const LEAST_PROMPT: u32 = 16;

/// Minimum number of tokens that can be requested.
pub(crate) const LEAST_OUTPUT: u32 = 1;

/// Maximum number of tokens of either.
pub const MOST_TOKENS: u32 = 4_000_000;
