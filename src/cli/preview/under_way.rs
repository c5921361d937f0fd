//! Which runs another process is measuring at this moment. Only looked at: taking the lock to see whether it is free could
//! make a sweep fail that starts in the same moment.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

use crate::store::{AttemptState, Store, StoreError};

/// An attempt that is being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    /// Which attempt at the run it is.
    pub attempt: u32,
    /// The process that makes it.
    pub pid: u32,
}

/// The attempts, by the run's short id, that the process holding the lock of the folder has not ended. None where the
/// system does not list its locks (it does on Linux).
pub fn under_way(store: &Store) -> Result<HashMap<String, UnderWay>, StoreError> {
    let Some(holder) = holder(store) else { return Ok(HashMap::new()) };
    let theirs = store.attempts()?.into_iter().filter_map(|attempt| {
        let pid = attempt.record.as_ref()?.pid;
        let live = pid == holder && attempt.state == AttemptState::Unfinished;
        live.then_some((attempt.id, UnderWay { attempt: attempt.number, pid }))
    });
    Ok(theirs.collect())
}

/// The process that holds the folder's lock.
fn holder(store: &Store) -> Option<u32> {
    let inode = std::fs::metadata(store.layout().lock()).ok()?.ino();
    holder_in(&std::fs::read_to_string("/proc/locks").ok()?, inode)
}

/// `2: FLOCK  ADVISORY  WRITE 4242 fd:01:1310739 0 EOF`: the process that holds the write lock of a file.
fn holder_in(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_held = words.next()? == "FLOCK";
        let is_write = words.nth(1)? == "WRITE";
        let pid = words.next()?.parse().ok()?;
        let file: u64 = words.next()?.rsplit(':').next()?.parse().ok()?;
        (is_held && is_write && file == inode).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_read_from_the_systems_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fd:01:12 0 EOF\n2: FLOCK  ADVISORY  READ 8 fd:01:12 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 4242 fd:01:12 0 EOF\n3: -> FLOCK  ADVISORY  WRITE 9 fd:01:13 0 EOF\n";
        assert_eq!(holder_in(locks, 12), Some(4242));
        assert_eq!(holder_in(locks, 13), None, "who waits for a lock does not hold it");
        assert_eq!(holder_in("", 12), None);
    }
}
