//! `analysis` as a crate of its own, so that an edit in it does not compile the engine again.

#![warn(missing_docs, unreachable_pub)]

#[path = "mod.rs"]
pub mod analysis;

pub use sweepline_core::{metrics, plan, protocol, rows, telemetry, units};
