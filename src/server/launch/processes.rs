//! Finds and signals processes of this machine: children of a process, and processes with a server's mark.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use super::order::MARK;

/// A process as described in `/proc`.
struct Seen {
    pid: u32,
    parent: u32,
    is_zombie: bool,
    started: u64,
}

/// Reads `/proc/PID/stat`; `None` if the process or `/proc` does not exist.
fn seen(pid: u32) -> Option<Seen> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the name in parentheses, may itself contain spaces and parentheses.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Seen {
        pid,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the time at which a process was started, in ticks since boot; `None` if there is no such process.
/// Together with the process id, this identifies a process uniquely.
pub(super) fn start_of(pid: u32) -> Option<u64> {
    seen(pid).map(|seen| seen.started)
}

/// Whether the process with this id and start time is still alive. A later process with the same id has a
/// different start time.
pub(super) fn is_alive(pid: u32, started: u64) -> bool {
    seen(pid).is_some_and(|seen| seen.started == started && !seen.is_zombie)
}

/// Returns the living children of a process.
pub(super) fn children_of(parent: u32) -> Vec<u32> {
    let children = all().filter_map(seen).filter(|seen| seen.parent == parent && !seen.is_zombie);
    children.map(|seen| seen.pid).collect()
}

/// Reaps dead children of this process, except `spared`, for which another thread waits. A supervisor must
/// reap them because it inherits orphans of its server, and a process group exists until all of its dead
/// members are reaped.
pub(super) fn reap(spared: u32) {
    let own = std::process::id();
    let dead = all().filter_map(seen).filter(|seen| seen.parent == own && seen.is_zombie && seen.pid != spared);
    for pid in dead.filter_map(|seen| i32::try_from(seen.pid).ok().and_then(Pid::from_raw)) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Returns the living processes that were started with a server's mark in their environment.
pub(super) fn marked(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    all()
        .filter(|pid| *pid != own)
        .filter(|pid| carries(*pid, mark))
        .filter(|pid| seen(*pid).is_some_and(|seen| !seen.is_zombie))
        .collect()
}

/// Whether a process has a server's mark in its environment.
pub(super) fn carries(pid: u32, mark: &str) -> bool {
    let wanted = format!("{MARK}={mark}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
}

/// Returns the bytes that the processes with a mark have read from storage, not counting reads from the
/// page cache; `None` if no process reports them.
pub(super) fn storage_read_bytes(mark: &str) -> Option<u64> {
    let of = |pid: &u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
    };
    let known: Vec<u64> = marked(mark).iter().filter_map(of).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Sends a signal to a process. Has no effect if the process is gone.
pub(super) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to a whole process group.
pub(super) fn signal_group(group: u32, signal: Signal) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

/// Returns an identifier of the machine's current boot.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
