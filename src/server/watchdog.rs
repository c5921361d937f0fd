//! Beside the command of a hook: a process that ends the command's group where sweepline is killed and can end nothing any more.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// The hidden command of the program that is a watchdog.
const WATCH: [&str; 2] = ["supervise", "--group"];

/// Watches a process group for as long as this value lives.
#[derive(Debug)]
pub(super) struct Watchdog(Child);

impl Watchdog {
    /// Over the group that `group` leads; none where no process starts, and then a kill of sweepline leaves the group.
    pub(super) fn over(group: u32) -> Option<Watchdog> {
        let own = std::env::current_exe().ok()?;
        let started = Command::new(own)
            .args(WATCH)
            .arg(group.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A group of its own: whoever kills sweepline with its group does not kill this.
            .process_group(0)
            .spawn();
        started.ok().map(Watchdog)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Before the pipe closes: what the command left running on purpose goes on.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Is a watchdog: ends the group when the pipe on standard input closes, which only the end of sweepline does.
pub fn watch(group: u32) -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    kill_group(group);
    Ok(())
}

/// Kills a process group; one that is gone is well.
pub(super) fn kill_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
