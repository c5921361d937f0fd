//! Slurm: job arrays, and what its queue says of them.

mod queue;
mod script;

pub use queue::{cancel, hold_back, queue, submit};
pub use script::{Array, Call, arrays};
