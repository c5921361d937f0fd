//! The jobs that were submitted for a plan, with their current state on the cluster.

use std::path::PathBuf;

use crate::cli::failure::Failure;
use crate::submit::record::{Cluster, Submission, Submitted};
use crate::submit::{Element, JobState, Queue, kubectl, slurm};
use crate::units::regular_file;

/// A submitted job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// The element of the job.
    pub(super) element: Submitted,
    /// The cluster of the job.
    pub(super) on: Cluster,
    /// The name of the job in the queue.
    pub(super) job_name: String,
    /// The state of the job in the queue, or in Slurm's accounting; `None` if neither lists it any
    /// longer.
    pub(super) state: Option<JobState>,
}

impl Job {
    /// Whether the job is pending or running.
    pub(super) fn is_live(&self) -> bool {
        self.state.as_ref().is_some_and(JobState::is_live)
    }

    /// Returns the exit code that the job's script wrote; `None` if it has not written one.
    pub(super) fn code(&self) -> Option<u8> {
        regular_file::read_text(self.element.exit.as_ref()?, 64).ok()?.trim().parse().ok()
    }
}

/// Returns all jobs of `submissions`, oldest first; queries each queue once.
pub(super) fn jobs(submissions: &[(PathBuf, Submission)]) -> Result<Vec<Job>, Failure> {
    let mut names: Vec<(Cluster, &str, Queue, Queue)> = Vec::new();
    let mut all = Vec::new();
    for (_, submission) in submissions {
        let (on, name) = (submission.on, submission.job_name.as_str());
        if !names.iter().any(|(of, known, ..)| (*of, *known) == (on, name)) {
            let queue = match on {
                Cluster::Slurm => slurm::queue(name),
                Cluster::Kubernetes => kubectl::queue(name),
            };
            let queue = queue.map_err(Failure::Usage)?;
            let ended = forgotten(submissions, (on, name), &queue);
            names.push((on, name, queue, ended));
        }
        let queues = names.iter().find(|(of, known, ..)| (*of, *known) == (on, name));
        for element in &submission.elements {
            let listed = queues.and_then(|(.., queue, ended)| queue.job(&element.job).or(ended.job(&element.job)));
            let state = match listed {
                Some(state) => Some(state.clone()),
                None if element.is_cancelled => Some(JobState::new("CANCELLED", "")),
                None if !element.is_handed_over => Some(JobState::new("PENDING", "Dependency")),
                None => None,
            };
            all.push(Job { element: element.clone(), on, job_name: submission.job_name.clone(), state });
        }
    }
    Ok(all)
}

/// Returns the final states of jobs that Slurm's queue no longer lists, if its accounting has them.
fn forgotten(submissions: &[(PathBuf, Submission)], (on, name): (Cluster, &str), queue: &Queue) -> Queue {
    let own = submissions.iter().filter(|(_, one)| (one.on, one.job_name.as_str()) == (on, name));
    let jobs = own.flat_map(|(_, one)| &one.elements).map(|element| element.job.as_str());
    let gone: Vec<&str> = jobs.filter(|job| queue.job(job).is_none()).collect();
    if on == Cluster::Slurm { slurm::ended(name, &gone) } else { Queue::default() }
}

/// Returns the current job of an element, which is a pending or running one or, if there is none, the last
/// one; `None` if the element has no job.
pub(super) fn of<'a>(jobs: &'a [Job], element: &Element) -> Option<&'a Job> {
    let name = element.name();
    let own = || jobs.iter().rev().filter(|job| job.element.name == name);
    own().find(|job| job.is_live()).or_else(|| own().next())
}

/// Returns the pending and running jobs of a part.
pub(super) fn live_of_part<'a>(jobs: &'a [Job], part: &'a str) -> impl Iterator<Item = &'a Job> {
    jobs.iter().filter(move |job| job.element.part == part && job.is_live())
}
