//! The mock server as a separate crate, so that changing it recompiles nothing else. It shares no
//! codec with the engine.

#![warn(missing_docs, unreachable_pub)]

#[path = "mod.rs"]
pub mod mock;

pub use sweepline_core::units;
