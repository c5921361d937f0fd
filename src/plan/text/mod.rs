//! The texts of a plan as data: trees of values that know where they were written, and the places themselves.
//!
//! Knows nothing of plans, of YAML or of mistakes. Everybody in `plan` may use it; it uses nobody.

pub(crate) mod alias;
pub(crate) mod format;
pub(crate) mod place;
pub(crate) mod secret;
pub(crate) mod source;
pub(crate) mod span;
pub(crate) mod tree;
