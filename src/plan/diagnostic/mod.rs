//! The mistakes of a plan: what each is (`error`), how it is quoted (`snippet`), what is hidden in it (`mask`), what may have been
//! meant (`suggest`), and the same for programs (`report`).
//!
//! Stands on `text` alone. Every room that finds mistakes uses it.

pub(crate) mod error;
pub(crate) mod mask;
pub(crate) mod report;
pub(crate) mod snippet;
pub(crate) mod suggest;
