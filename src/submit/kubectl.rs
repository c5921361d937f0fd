//! kubectl: applies manifests, deletes Jobs, and reports their state.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::job_state::{JobState, Queue};
use super::program::call;

/// Whether kubectl is installed on this machine.
pub fn is_installed() -> bool {
    let mut version = Command::new("kubectl");
    version.args(["version", "--client"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    !matches!(version.status(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// Applies a manifest.
pub fn apply(manifest: &Path) -> Result<(), String> {
    call("kubectl", &["apply", "-f", &manifest.to_string_lossy()]).map(|_| ())
}

/// Deletes these Jobs and their pods; missing ones are not an error.
pub fn delete(jobs: &[&str]) -> Result<(), String> {
    let arguments = ["delete", "job", "--ignore-not-found", "--wait=false"];
    let arguments: Vec<&str> = arguments.into_iter().chain(jobs.iter().copied()).collect();
    call("kubectl", &arguments).map(|_| ())
}

/// Returns the Jobs with this name.
pub fn queue(job_name: &str) -> Result<Queue, String> {
    let selector = format!("app.kubernetes.io/name=sweepline,app.kubernetes.io/instance={job_name}");
    let said = call("kubectl", &["get", "jobs", "--selector", &selector, "--output", "json"])?;
    read(&said).map_err(|error| format!("kubectl get jobs did not print a list of Jobs: {error}"))
}

#[derive(Deserialize)]
struct Jobs {
    items: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    active: u32,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: String,
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

fn read(said: &str) -> Result<Queue, serde_json::Error> {
    let jobs: Jobs = serde_json::from_str(said)?;
    Ok(Queue::of(jobs.items.into_iter().map(|job| (job.metadata.name, state(&job.status)))))
}

/// Returns the state of a Job. The failure policy makes exit code 3 final, so a Job that ended with 3
/// counts as done.
fn state(status: &Status) -> JobState {
    let is = |kind: &str| status.conditions.iter().find(|one| one.r#type == kind && one.status == "True");
    if is("Complete").is_some() {
        return JobState::new("COMPLETED", "");
    }
    match is("Failed") {
        Some(failed) if failed.message.contains("exit code 3 ") => JobState::new("COMPLETED", "exit code 3"),
        Some(failed) => JobState::new("FAILED", &failed.reason),
        None if status.active > 0 => JobState::new("RUNNING", ""),
        None => JobState::new("PENDING", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_read_by_their_conditions() {
        let failed = |message: &str| {
            serde_json::json!({ "conditions": [
                { "type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": message },
            ] })
        };
        let said = serde_json::json!({ "items": [
            { "metadata": { "name": "new" } },
            { "metadata": { "name": "busy" }, "status": { "active": 1 } },
            { "metadata": { "name": "well" }, "status": { "conditions": [{ "type": "Complete", "status": "True" }] } },
            { "metadata": { "name": "bad" }, "status": failed("Container sweepline failed with exit code 2 matching FailJob") },
            { "metadata": { "name": "three" }, "status": failed("Container sweepline failed with exit code 3 matching FailJob") },
        ] });
        let queue = read(&said.to_string()).expect("Jobs");
        let state = |name: &str| queue.job(name).map(|job| job.state.clone()).expect(name);
        let states = ["new", "busy", "well", "bad", "three"].map(state);
        assert_eq!(states, ["PENDING", "RUNNING", "COMPLETED", "FAILED", "COMPLETED"]);
    }
}
