//! Slurm's own programs: sbatch, squeue, scancel. What they print in columns that we name is the same in all versions since 2014.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

use super::super::Wait;

/// What the queue says of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// The state, in Slurm's words: PENDING, RUNNING, COMPLETED, FAILED, CANCELLED…
    pub state: String,
    /// Why it waits, in Slurm's words, like Priority, Resources or Dependency.
    pub reason: String,
    /// The node; empty while there is none.
    pub node: String,
}

impl JobState {
    /// Whether it still waits or runs.
    pub fn is_live(&self) -> bool {
        let live = ["PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "REQUEUE_HOLD", "STOPPED"];
        live.contains(&self.state.as_str())
    }

    /// Whether it has begun.
    pub fn is_running(&self) -> bool {
        self.is_live() && self.state != "PENDING" && !self.state.starts_with("REQUEUE")
    }
}

/// The jobs of one name.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    jobs: HashMap<String, JobState>,
}

impl Queue {
    /// Asks squeue for the jobs of this name, ended ones too as long as Slurm remembers them.
    pub fn ask(job_name: &str) -> Result<Queue, String> {
        let name = format!("--name={job_name}");
        let format = "--format=%F|%K|%T|%r|%N";
        let said = call("squeue", &["--noheader", "--array", "--states=all", &name, format])?;
        Ok(Queue::read(&said))
    }

    fn read(said: &str) -> Queue {
        let job = |line: &str| {
            let mut columns = line.trim().split('|');
            let (array, task) = (columns.next()?, columns.next()?);
            let state = columns.next()?.to_owned();
            let (reason, node) = (columns.next()?.to_owned(), columns.next()?.to_owned());
            Some((format!("{array}_{task}"), JobState { state, reason, node }))
        };
        Queue { jobs: said.lines().filter_map(job).collect() }
    }

    /// What it says of a job, like `12_0`; none where it does not remember it.
    pub fn job(&self, job: &str) -> Option<&JobState> {
        self.jobs.get(job)
    }
}

/// How sbatch says what a job waits for; none where it waits for nothing.
pub fn hold_back<'a>(waits: impl Iterator<Item = (&'a str, Wait)>) -> Option<String> {
    let kind = |wait: Wait| match wait {
        Wait::Ended => "afterany",
        Wait::Succeeded => "afterok",
    };
    let all: Vec<String> = waits.map(|(job, wait)| format!("{}:{job}", kind(wait))).collect();
    (!all.is_empty()).then(|| format!("--dependency={}", all.join(",")))
}

/// Submits a script; gives the number of its array.
pub fn submit(script: &Path, dependency: Option<&str>) -> Result<String, String> {
    let script = script.to_string_lossy();
    let mut arguments = vec!["--parsable", "--kill-on-invalid-dep=yes"];
    arguments.extend(dependency);
    arguments.push(&script);
    let said = call("sbatch", &arguments)?;
    // With several clusters the name of this one stands behind a semicolon.
    let job = said.trim().split(';').next().unwrap_or_default().to_owned();
    match job.parse::<u64>() {
        Ok(_) => Ok(job),
        Err(_) => Err(format!("sbatch said `{}`, which is no number of a job", said.trim())),
    }
}

/// Cancels these jobs, each only if it has this name: numbers come again.
pub fn cancel(job_name: &str, jobs: &[&str]) -> Result<(), String> {
    let name = format!("--name={job_name}");
    let arguments: Vec<&str> = std::iter::once(name.as_str()).chain(jobs.iter().copied()).collect();
    call("scancel", &arguments).map(|_| ())
}

/// What a program printed, or why it did not, in words.
fn call(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{program} is not installed here: call it where Slurm's commands are, like a login node")
        }
        _ => format!("{program} cannot be started: {error}"),
    })?;
    let Output { status, stdout, stderr } = output;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    Err(format!("{program} failed ({status}): {}", String::from_utf8_lossy(&stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_read_by_its_columns() {
        let queue = Queue::read("12|0|RUNNING|None|n1\n12|1|PENDING|Dependency|\n\nnonsense\n");
        let first = queue.job("12_0").expect("a job");
        assert!((first.node.as_str(), first.is_live(), first.is_running()) == ("n1", true, true), "{first:?}");
        let second = queue.job("12_1").expect("a job");
        assert!(second.is_live() && !second.is_running() && second.reason == "Dependency", "{second:?}");
        assert!(queue.job("13_0").is_none());
    }

    #[test]
    fn a_job_waits_for_the_end_or_for_success() {
        let waits = [("12_0", Wait::Ended), ("13_1", Wait::Succeeded)];
        assert_eq!(hold_back(waits.into_iter()).as_deref(), Some("--dependency=afterany:12_0,afterok:13_1"));
        assert_eq!(hold_back(std::iter::empty()), None);
    }
}
