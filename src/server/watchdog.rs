//! A watchdog for the command of a hook: a process that ends the command's group if sweepline is killed and
//! can no longer do so.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::own_program::own_program;

/// The hidden command that runs the program as a watchdog.
const WATCH: [&str; 2] = ["supervise", "--group"];

/// Watches a process group as long as this value lives.
#[derive(Debug)]
pub(super) struct Watchdog(Child);

impl Watchdog {
    /// Watches the group that `group` leads. Returns `None` if no process could be started; killing
    /// sweepline then leaves the group running.
    pub(super) fn over(group: u32) -> Option<Watchdog> {
        let own = own_program().ok()?;
        let started = Command::new(own)
            .args(WATCH)
            .arg(group.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The watchdog has its own process group, so that killing sweepline's group does not
            // kill it.
            .process_group(0)
            .spawn();
        started.ok().map(Watchdog)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Ended before the pipe closes, so that processes which the command left running on purpose
        // continue.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs as a watchdog: ends the group when the pipe on standard input closes, which happens only when
/// sweepline ends.
pub fn watch(group: u32) -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    kill_group(group);
    Ok(())
}

/// Kills a process group; it may already be gone.
pub(super) fn kill_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
