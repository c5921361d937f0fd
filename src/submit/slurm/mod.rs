//! Slurm: job arrays, and what its queue says of them.

mod queue;
mod script;

pub use queue::{JobState, Queue, cancel, hold_back, submit};
pub use script::{Array, Call, arrays};
