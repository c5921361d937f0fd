//! Converts text to a tree: parses YAML and TOML, merges fragments, and applies `--set`.
//!
//! This module depends on `text` and `diagnostic`, and in `model` only on the names of axes. `files`
//! calls it with the texts that it has read.

pub(crate) mod aliases;
pub(crate) mod merge;
pub(crate) mod server_axis;
pub(crate) mod set;
pub(crate) mod toml;
pub(crate) mod yaml;
