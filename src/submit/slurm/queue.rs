//! Calls Slurm's own programs: sbatch, squeue and scancel. Their output in named columns has been the same in
//! all versions since 2014.

use std::path::Path;

use crate::submit::program::call;
use crate::submit::{JobState, Queue, Wait};

/// Returns the jobs with this name from squeue, including jobs that have ended but that Slurm still lists.
pub fn queue(job_name: &str) -> Result<Queue, String> {
    let name = format!("--name={job_name}");
    let format = "--format=%F|%K|%T|%r|%N";
    let said = call("squeue", &["--noheader", "--array", "--states=all", &name, format])?;
    Ok(read(&said))
}

fn read(said: &str) -> Queue {
    let job = |line: &str| {
        let mut columns = line.trim().split('|');
        let (array, task) = (columns.next()?, columns.next()?);
        let state = columns.next()?.to_owned();
        let (reason, node) = (columns.next()?.to_owned(), columns.next()?.to_owned());
        Some((format!("{array}_{task}"), JobState { state, reason, node }))
    };
    Queue::of(said.lines().filter_map(job))
}

/// Returns sbatch's option for dependencies; `None` if there are none.
pub fn hold_back<'a>(waits: impl Iterator<Item = (&'a str, Wait)>) -> Option<String> {
    let kind = |wait: Wait| match wait {
        Wait::Ended => "afterany",
        Wait::Succeeded => "afterok",
    };
    let all: Vec<String> = waits.map(|(job, wait)| format!("{}:{job}", kind(wait))).collect();
    (!all.is_empty()).then(|| format!("--dependency={}", all.join(",")))
}

/// Submits a script; returns the number of the job array.
pub fn submit(script: &Path, dependency: Option<&str>) -> Result<String, String> {
    let script = script.to_string_lossy();
    let mut arguments = vec!["--parsable", "--kill-on-invalid-dep=yes"];
    arguments.extend(dependency);
    arguments.push(&script);
    let said = call("sbatch", &arguments)?;
    // If there are several clusters, the name of the cluster follows after a semicolon.
    let job = said.trim().split(';').next().unwrap_or_default().to_owned();
    match job.parse::<u64>() {
        Ok(_) => Ok(job),
        Err(_) => Err(format!("sbatch printed `{}` instead of a job number", said.trim())),
    }
}

/// Cancels these jobs, each only if it has this name, because Slurm reuses job numbers.
pub fn cancel(job_name: &str, jobs: &[&str]) -> Result<(), String> {
    let name = format!("--name={job_name}");
    let arguments: Vec<&str> = std::iter::once(name.as_str()).chain(jobs.iter().copied()).collect();
    call("scancel", &arguments).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_read_by_its_columns() {
        let queue = read("12|0|RUNNING|None|n1\n12|1|PENDING|Dependency|\n\nnonsense\n");
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
