//! Runs a cluster's command-line programs, such as sbatch and kubectl.

use std::io;
use std::process::{Command, Output};

/// Runs a program and returns its output, or the reason why it failed.
pub(super) fn call(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "{program} is not installed here: run sweepline where the cluster's commands are, like a login node"
            )
        }
        _ => format!("cannot start {program}: {error}"),
    })?;
    let Output { status, stdout, stderr } = output;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    Err(format!("{program} failed ({status}): {}", String::from_utf8_lossy(&stderr).trim()))
}
