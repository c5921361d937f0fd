//! `lengths` of a scenario: how many tokens prompts and responses have, if this varies between requests.
//!
//! `lengths_field` has the form that users write, `resolved` the form that runs use, `presets` the presets,
//! and `table_rows` the rows of tables. Lengths are drawn in `workload`.

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

/// Maximum number of tokens in a prompt or in a response.
pub const MOST_TOKENS: u32 = 4_000_000;
