//! From a sweep's axes, conditions and rules to its cells.
//!
//! Stands on the types of `model`. `check`, `expand` and the lint count and choose cells with it.

pub(crate) mod axes;
pub(crate) mod compared;
pub(crate) mod fields;
pub(crate) mod grid;
