//! The mock server as a separate crate: a change in it recompiles nothing else, and it shares no
//! codec with the engine.

#![warn(missing_docs, unreachable_pub)]

#[path = "mod.rs"]
pub mod mock;

pub use sweepline_core::units;
