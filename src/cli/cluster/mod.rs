//! A plan on a cluster: `submit`, `status` and `cancel`.

pub(super) mod batch;
pub(super) mod cancel;
mod jobs;
mod paths;
pub(super) mod status;
pub(super) mod submit;
mod to_kubernetes;
mod to_slurm;
mod work;
