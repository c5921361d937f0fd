//! The errors of a plan: their kinds (`error`), their quoted lines (`snippet`), masked secrets (`mask`),
//! suggestions (`suggest`), and the machine-readable report (`report`).
//!
//! This module depends only on `text`, and every module that finds errors uses it.

pub(crate) mod error;
pub(crate) mod mask;
pub(crate) mod report;
pub(crate) mod snippet;
pub(crate) mod suggest;
