//! The texts of a plan as data: trees of values with the places where they were written, and the places
//! themselves.
//!
//! Independent of plans, YAML and errors. Every module in `plan` may use it; it uses none of them.

pub(crate) mod alias;
pub(crate) mod format;
pub(crate) mod place;
pub(crate) mod secret;
pub(crate) mod source;
pub(crate) mod span;
pub(crate) mod tree;
