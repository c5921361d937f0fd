//! The texts of a plan as data: trees of values with the places where the values are written, and the
//! places themselves.
//!
//! This module is independent of plans, YAML and errors. Every module in `plan` may use it, and it uses
//! none of them.

pub(crate) mod alias;
pub(crate) mod format;
pub(crate) mod place;
pub(crate) mod secret;
pub(crate) mod source;
pub(crate) mod span;
pub(crate) mod token_command;
pub(crate) mod tree;
