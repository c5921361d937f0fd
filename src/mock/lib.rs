//! The mock server. It is a separate crate, so that changing it does not recompile other crates. It shares
//! no codec with the engine.

#![warn(missing_docs, unreachable_pub)]

#[path = "mod.rs"]
pub mod mock;

pub use sweepline_core::units;
