//! Reads Slurm's accounting, if it is enabled: the final states of jobs that the queue no longer lists
//! (`MinJobAge`, 5 minutes by default).

use std::collections::BTreeSet;

use crate::submit::program::call;
use crate::submit::{JobState, Queue};

/// Returns the final states of these jobs, according to sacct. The result is empty if there is no
/// sacct, if accounting is disabled, or if its database is down; the final states then remain unknown.
pub fn ended(job_name: &str, jobs: &[&str]) -> Queue {
    let arrays: BTreeSet<&str> = jobs.iter().filter_map(|job| job.split('_').next()).collect();
    if arrays.is_empty() {
        return Queue::default();
    }
    let arrays = format!("--jobs={}", Vec::from_iter(arrays).join(","));
    // sacct finds jobs that are given by ID regardless of when they ran.
    let format = "--format=JobID,JobName%64,State,ExitCode,NodeList";
    let said = call("sacct", &["--noheader", "--parsable2", "--allocations", &arrays, format]);
    said.map_or_else(|_| Queue::default(), |said| read(&said, job_name, jobs))
}

fn read(said: &str, job_name: &str, jobs: &[&str]) -> Queue {
    let of = |line: &str| {
        let mut columns = line.trim().split('|');
        let (id, name) = (columns.next()?, columns.next()?);
        // `CANCELLED by 1000` includes the user ID.
        let state = columns.next()?.split(' ').next()?;
        let (code, node) = (columns.next()?, columns.next()?);
        let state = JobState { state: state.to_owned(), reason: reason(code), node: node.to_owned() };
        // A job that accounting lists as live, but the queue does not list, was lost with a controller; its
        // final state is unknown.
        (name == job_name && !state.is_live()).then(|| (id.to_owned(), state))
    };
    let known: Vec<(String, JobState)> = said.lines().filter_map(of).collect();
    let one = |job: &&str| {
        // If a job ID was reused, the last job counts.
        let (_, state) = known.iter().rev().find(|(id, _)| covers(id, job))?;
        Some(((*job).to_owned(), state.clone()))
    };
    Queue::of(jobs.iter().filter_map(one))
}

/// Derives the reason for a job's end from `code:signal`.
fn reason(code: &str) -> String {
    match code.split_once(':') {
        Some(("0", "0")) | None => String::new(),
        Some(("0", signal)) => format!("signal {signal}"),
        Some((code, _)) => format!("exit code {code}"),
    }
}

/// Whether an ID in sacct's output covers a job: `12_1` itself, or `12_[0-3,5%2]` for elements that never
/// started.
fn covers(id: &str, job: &str) -> bool {
    let (Some((array, tasks)), Some((of, task))) = (id.split_once("_["), job.split_once('_')) else { return id == job };
    let Ok(task) = task.parse::<u32>() else { return false };
    let tasks = tasks.split([']', '%']).next().unwrap_or_default();
    let is_in = |range: &str| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        matches!((from.parse::<u32>(), to.parse::<u32>()), (Ok(from), Ok(to)) if (from..=to).contains(&task))
    };
    array == of && tasks.split(',').any(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounting_tells_how_jobs_ended() {
        let said = "7_0|other|COMPLETED|0:0|n1\n7_0|mine|TIMEOUT|0:15|n1\n7_1|mine|RUNNING|0:0|n2\n\
                    8_[0-1,4%2]|mine|CANCELLED by 0|0:0|None assigned\n9_0|mine|FAILED|130:0|n1\nnonsense\n";
        let queue = read(said, "mine", &["7_0", "7_1", "8_1", "8_2", "8_4", "9_0"]);
        let state = |job: &str| queue.job(job).map(|job| format!("{} {}", job.state, job.reason));
        assert_eq!(state("7_0").as_deref(), Some("TIMEOUT signal 15"));
        assert_eq!(state("7_1"), None, "the queue lists running jobs");
        assert_eq!(state("8_1").as_deref(), Some("CANCELLED "));
        assert_eq!((state("8_2"), state("8_4").is_some()), (None, true));
        assert_eq!(state("9_0").as_deref(), Some("FAILED exit code 130"));
    }
}
