//! Builds the cells of a sweep from its axes, conditions and rules.
//!
//! This module depends on the types of `model`. `check`, `expand` and the lint use it to count and
//! select cells.

pub mod axes;
pub mod compared;
pub mod fields;
pub mod grid;
