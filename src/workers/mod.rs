//! Sends one load from several processes. A coordinator starts the workers with any command that connects
//! it to their standard input and output (locally, `ssh`, `srun`, `kubectl exec`), compares their clocks
//! with its own, lets them start at the same instant, and merges their rows into one table.
//!
//! Worker w of N sends every request whose number modulo N is w, and likewise for slots and conversations.
//! All workers derive the same schedule from the same spec, so the load is the same as that of a single
//! process.

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
mod sinks;
mod start;
mod under_way;

pub use conduct::{Load, execute};
pub use message::{Order, TokenizerTexts};
pub use serve::{Outlets, serve};
pub use start::{StartCommand, WORKER};
