//! A plan on a cluster: what its jobs are, the scripts and manifests that say so, and what became of those that were submitted.
//!
//! A plan has `parts`: endpoints whose runs one process makes. The runs of a part fall into `elements` by what they wait for; an element is a
//! job, and its command is `sweepline run --part`. `slurm` makes job arrays of elements, `kubernetes` makes Jobs; both are pure functions of
//! the expanded plan. `record` remembers what was submitted. Nothing here measures, and no id depends on it.

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
