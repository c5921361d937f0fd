//! States of jobs in a cluster's queue, in Slurm's terminology.

use std::collections::HashMap;

/// The state of a job in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// The state, in Slurm's terminology: PENDING, RUNNING, COMPLETED, FAILED, CANCELLED…
    pub state: String,
    /// The reason why the job is waiting or failed, as reported by the cluster, such as Priority, Resources
    /// or Dependency.
    pub reason: String,
    /// The node on which the job runs; empty if there is none.
    pub node: String,
}

impl JobState {
    /// Creates a state without a node.
    pub fn new(state: &str, reason: &str) -> JobState {
        JobState { state: state.to_owned(), reason: reason.to_owned(), node: String::new() }
    }

    /// Whether the job is pending or running.
    pub fn is_live(&self) -> bool {
        let live =
            ["PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "REQUEUE_HOLD", "STOPPED"];
        live.contains(&self.state.as_str())
    }

    /// Whether the job has started.
    pub fn is_running(&self) -> bool {
        self.is_live() && self.state != "PENDING" && !self.state.starts_with("REQUEUE")
    }

    /// Whether the job is held, so that it does not start until it is released. Slurm reports the reasons
    /// JobHeldUser, JobHeldAdmin, and `launch failed requeued held` (squeue(1), JOB REASON CODES).
    pub fn is_held(&self) -> bool {
        self.state == "REQUEUE_HOLD" || self.state == "PENDING" && self.reason.to_lowercase().contains("held")
    }

    /// Whether the job has ended successfully.
    pub fn is_completed(&self) -> bool {
        self.state == "COMPLETED"
    }

    /// Whether the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.state == "CANCELLED"
    }
}

/// The states of the jobs in a cluster's queue that have the same name.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    jobs: HashMap<String, JobState>,
}

impl Queue {
    /// Creates a queue from the ids and states of jobs.
    pub fn of(jobs: impl IntoIterator<Item = (String, JobState)>) -> Queue {
        Queue { jobs: jobs.into_iter().collect() }
    }

    /// Returns the state of a job; `None` if the queue no longer lists the job.
    pub fn job(&self, job: &str) -> Option<&JobState> {
        self.jobs.get(job)
    }
}
