//! A watchdog for the command of a hook: a separate process that kills the command's process group if
//! sweepline is killed while the command runs.
//!
//! The watchdog is started first, and the command joins its group, so that no instant exists at which the
//! command runs unwatched.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::own_program::own_program;

/// The arguments that run this program as a watchdog.
const WATCH: [&str; 2] = ["supervise", "--own-group"];

/// The watchdog of a process group, which is its first process. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Watchdog(Child);

impl Watchdog {
    /// Starts a watchdog in a process group of its own. Returns `None` if the watchdog could not be started.
    pub(super) fn start() -> Option<Watchdog> {
        let own = own_program().ok()?;
        let started = Command::new(own)
            .args(WATCH)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The watchdog survives if sweepline's group is killed.
            .process_group(0)
            .spawn();
        started.ok().map(Watchdog)
    }

    /// Returns the process group that the watchdog kills.
    pub(super) fn group(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The watchdog is killed before its pipe closes. Otherwise it would kill the processes that the
        // command left running on purpose.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs this process as a watchdog: kills its own process group when the pipe on standard input closes, which
/// happens only when sweepline ends.
pub fn watch() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    kill_group(std::process::id());
    Ok(())
}

/// Kills a process group. Has no effect if the group is already gone.
pub(super) fn kill_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
