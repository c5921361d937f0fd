//! Runs a command to its end within a time limit.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::processes::signal_group;

/// Interval between checks whether the command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a command to its end, or kills it at the deadline. The output is discarded.
pub(super) fn run_within(command: &[String], env: &BTreeMap<String, String>, folder: &Path, deadline: Instant) {
    let Some((program, arguments)) = command.split_first() else { return };
    let mut started = Command::new(program);
    started.args(arguments).envs(env).current_dir(folder).process_group(0);
    let Ok(mut child) = started.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        return;
    };
    while let Ok(None) = child.try_wait() {
        if Instant::now() >= deadline {
            signal_group(child.id(), Signal::KILL);
            let _ = child.wait();
            return;
        }
        std::thread::sleep(LOOK);
    }
}
