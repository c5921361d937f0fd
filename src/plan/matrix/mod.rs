//! From a sweep's axes, conditions and rules to its cells.
//!
//! Stands on the types of `model`. `check`, `expand` and the lint count and choose cells with it.

pub mod axes;
pub mod compared;
pub mod fields;
pub mod grid;
