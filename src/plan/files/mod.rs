//! Opens and reads all files: the plan's own text and its fragments (`loader`), and other files that the
//! plan names, such as data sets, traces, profiles, tokenizers and tables of lengths.
//!
//! The content of the files is stored in the types of `model`. This module depends on `syntax`, `read`
//! and `model`; only `load` calls it.

pub(crate) mod data_reader;
pub(crate) mod disk;
pub(crate) mod find;
pub(crate) mod length_tables;
pub(crate) mod loader;
pub(crate) mod profiles;
pub(crate) mod relocation;
pub(crate) mod tables;
pub(crate) mod tokenizers;
pub(crate) mod traces;
