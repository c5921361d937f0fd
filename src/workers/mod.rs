//! Sends one load from several processes. A coordinator starts the workers, either on its own machine or
//! with any command that connects it to their standard input and output (`ssh`, `srun`, `kubectl exec`). It
//! compares their clocks with its own, starts them all at the same instant, and merges their rows into one
//! table.
//!
//! Worker w of N sends every request whose number modulo N is w. Slots and conversations are divided in the
//! same way. All workers derive the same schedule from the same spec, so the load is the same as that of a
//! single process.

mod child;
mod clocks;
mod conduct;
mod cover;
mod end;
mod frame;
mod hooks;
mod material;
mod merge;
mod message;
mod serve;
#[cfg(test)]
mod simulations;
mod sinks;
mod start;
mod under_way;

pub use conduct::{Load, execute};
pub use message::{Order, TokenizerTexts};
pub use serve::{Outlets, serve};
pub use start::{StartCommand, WORKER};
