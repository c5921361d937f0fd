//! The mock server as a crate of its own: nothing else is compiled again where it changes, and it shares no codec with the engine.

#![warn(missing_docs, unreachable_pub)]

#[path = "mod.rs"]
pub mod mock;

pub use sweepline_core::units;
