//! Processes of this machine: which are below us, and which carry a server's mark.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use super::order::MARK;

/// A process as it is seen in `/proc`.
struct Seen {
    pid: u32,
    parent: u32,
    is_zombie: bool,
    started: u64,
}

/// Reads `/proc/PID/stat`; none where there is no such process, or no `/proc`.
fn seen(pid: u32) -> Option<Seen> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold blanks and parentheses itself.
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

/// When a process was started, in ticks since the machine's start: with its number it names one process only.
pub(super) fn start_of(pid: u32) -> Option<u64> {
    seen(pid).map(|seen| seen.started)
}

/// Whether this very process lives.
pub(super) fn is_alive(pid: u32, started: u64) -> bool {
    seen(pid).is_some_and(|seen| seen.started == started && !seen.is_zombie)
}

/// The living children of a process.
pub(super) fn children_of(parent: u32) -> Vec<u32> {
    let children = all().filter_map(seen).filter(|seen| seen.parent == parent && !seen.is_zombie);
    children.map(|seen| seen.pid).collect()
}

/// Takes the dead among our children off the list of processes, but for `spared`, for whom another thread waits: orphans of a server come to
/// its supervisor, and a process group lives as long as one of its dead is not waited for.
pub(super) fn reap(spared: u32) {
    let own = std::process::id();
    let dead = all().filter_map(seen).filter(|seen| seen.parent == own && seen.is_zombie && seen.pid != spared);
    for pid in dead.filter_map(|seen| i32::try_from(seen.pid).ok().and_then(Pid::from_raw)) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// The living processes that carry a server's mark in the environment that they were started with.
pub(super) fn marked(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    all()
        .filter(|pid| *pid != own)
        .filter(|pid| carries(*pid, mark))
        .filter(|pid| seen(*pid).is_some_and(|seen| !seen.is_zombie))
        .collect()
}

/// Whether a process carries a server's mark.
pub(super) fn carries(pid: u32, mark: &str) -> bool {
    let wanted = format!("{MARK}={mark}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
}

/// Bytes that the processes with a mark have fetched from storage, what the page cache held not counted; none where nothing is known of any.
pub(super) fn storage_read_bytes(mark: &str) -> Option<u64> {
    let of = |pid: &u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
    };
    let known: Vec<u64> = marked(mark).iter().filter_map(of).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Sends a signal; a process that is gone takes none.
pub(super) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to all of a process group.
pub(super) fn signal_group(group: u32, signal: Signal) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

/// Names the machine since its last start.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
