//! Runs a plan on a cluster: creates its jobs with their scripts and manifests, and determines the state of
//! submitted jobs.
//!
//! A plan has `parts`: endpoints whose runs one process measures. The runs of a part are grouped into
//! `elements` by their dependencies; each element is a job whose command is `sweepline run --part`.
//! `slurm` turns elements into job arrays, `kubernetes` into Jobs; both are pure functions of the
//! expanded plan. `record` stores the submissions. This module measures nothing, and no id depends on
//! it.

mod elements;
mod job_state;
pub mod kubectl;
pub mod kubernetes;
mod parts;
mod program;
pub mod record;
pub mod slurm;

pub use elements::{Element, Wait, elements, still_waits};
pub use job_state::{JobState, Queue};
pub use parts::{Part, parts};
