//! From text to a tree: YAML and TOML are read, fragments are merged, `--set` is laid over.
//!
//! Stands on `text` and `diagnostic`, and of `model` knows only which names mean one axis. `files` calls it with the texts that it has read.

pub(crate) mod aliases;
pub(crate) mod merge;
pub(crate) mod server_axis;
pub(crate) mod set;
pub(crate) mod toml;
pub(crate) mod yaml;
