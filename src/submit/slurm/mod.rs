//! Slurm: job arrays, and their state in Slurm's queue.

mod accounting;
mod queue;
mod script;

pub use accounting::ended;
pub use queue::{cancel, hold_back, queue, submit};
pub use script::{Array, Call, arrays};
