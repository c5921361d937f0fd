//! Kubernetes: Jobs, and what the API server says of them.

use super::slurm::Queue;

/// The Jobs of one name.
pub fn queue(_job_name: &str) -> Result<Queue, String> {
    Err("later".to_owned())
}

/// Deletes these Jobs.
pub fn delete(_jobs: &[&str]) -> Result<(), String> {
    Err("later".to_owned())
}
