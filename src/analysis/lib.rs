//! Builds `analysis` as a separate crate, so that editing it does not recompile the engine.

#![warn(missing_docs, unreachable_pub)]

#[path = "mod.rs"]
pub mod analysis;

pub use sweepline_core::{metrics, plan, protocol, rows, telemetry, units};
