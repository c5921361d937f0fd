//! Reads the types of a plan from a tree, using the serde derives of `model`. All errors are reported in
//! one pass, each with its remedy.
//!
//! This module depends on `text`, `diagnostic` and `model`. It opens no files and does not check a plan as
//! a whole. `files` and `load` call it.

pub(crate) mod lossy_values;
pub(crate) mod other_tools;
pub(crate) mod reader;
pub(crate) mod recover;
pub(crate) mod remedy;
pub(crate) mod wanted;
