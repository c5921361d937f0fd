//! A watchdog for the command of a hook: a separate process that kills the command's process group if
//! sweepline is killed while the command runs.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::own_program::own_program;

/// The arguments that run this program as a watchdog.
const WATCH: [&str; 2] = ["supervise", "--group"];

/// The watchdog of a process group. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Watchdog(Child);

impl Watchdog {
    /// Starts a watchdog for the process group `group`. Returns `None` if the watchdog could not be
    /// started; if sweepline is killed, the group then continues to run.
    pub(super) fn over(group: u32) -> Option<Watchdog> {
        let own = own_program().ok()?;
        let started = Command::new(own)
            .args(WATCH)
            .arg(group.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The watchdog has its own process group, so it survives if sweepline's group is killed.
            .process_group(0)
            .spawn();
        started.ok().map(Watchdog)
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

/// Runs this process as a watchdog: kills the process group when the pipe on standard input closes, which
/// happens only when sweepline ends.
pub fn watch(group: u32) -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    kill_group(group);
    Ok(())
}

/// Kills a process group. Has no effect if the group is already gone.
pub(super) fn kill_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
