//! Slurm: job arrays, and their state in its queue.

mod queue;
mod script;

pub use queue::{cancel, hold_back, queue, submit};
pub use script::{Array, Call, arrays};
