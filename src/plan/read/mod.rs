//! From a tree to the types of a plan: the serde derives of `model` read it; all errors are reported in one
//! pass, each with its remedy.
//!
//! Depends on `text`, `diagnostic` and `model`; opens no files and does not check a plan as a whole.
//! `files` and `load` call it.

pub(crate) mod lossy_values;
pub(crate) mod other_tools;
pub(crate) mod reader;
pub(crate) mod recover;
pub(crate) mod remedy;
pub(crate) mod wanted;
