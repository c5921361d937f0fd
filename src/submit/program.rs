//! The programs of clusters, called for what they print.

use std::io;
use std::process::{Command, Output};

/// What a program printed, or why it did not, in words.
pub(super) fn call(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "{program} is not installed here: call sweepline where the cluster's commands are, like a login node"
            )
        }
        _ => format!("{program} cannot be started: {error}"),
    })?;
    let Output { status, stdout, stderr } = output;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    Err(format!("{program} failed ({status}): {}", String::from_utf8_lossy(&stderr).trim()))
}
