//! What a cluster's queue says of jobs, in the words of Slurm.

use std::collections::HashMap;

/// What the queue says of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// The state, in Slurm's words: PENDING, RUNNING, COMPLETED, FAILED, CANCELLED…
    pub state: String,
    /// Why it waits or failed, in the cluster's words, like Priority, Resources or Dependency.
    pub reason: String,
    /// The node; empty while there is none.
    pub node: String,
}

impl JobState {
    /// One without a node.
    pub fn new(state: &str, reason: &str) -> JobState {
        JobState { state: state.to_owned(), reason: reason.to_owned(), node: String::new() }
    }

    /// Whether it still waits or runs.
    pub fn is_live(&self) -> bool {
        let live =
            ["PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "REQUEUE_HOLD", "STOPPED"];
        live.contains(&self.state.as_str())
    }

    /// Whether it has begun.
    pub fn is_running(&self) -> bool {
        self.is_live() && self.state != "PENDING" && !self.state.starts_with("REQUEUE")
    }

    /// Whether it has ended well.
    pub fn is_completed(&self) -> bool {
        self.state == "COMPLETED"
    }

    /// Whether somebody cancelled it.
    pub fn is_cancelled(&self) -> bool {
        self.state == "CANCELLED"
    }
}

/// The jobs of one name.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    jobs: HashMap<String, JobState>,
}

impl Queue {
    /// The queue of these jobs.
    pub fn of(jobs: impl IntoIterator<Item = (String, JobState)>) -> Queue {
        Queue { jobs: jobs.into_iter().collect() }
    }

    /// What it says of a job; none where it does not remember it.
    pub fn job(&self, job: &str) -> Option<&JobState> {
        self.jobs.get(job)
    }
}
