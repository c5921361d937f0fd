//! Collects the processes that the readings of a run find on the GPUs, to determine which of them do not
//! belong to the server.

use std::collections::BTreeMap;

use crate::rows::{GpuReadings, OtherProcess};

/// Maximum number of recorded processes that do not belong to the server.
const MOST: usize = 64;

/// A process that one reading found on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::telemetry) struct Found {
    /// The process id.
    pub(super) pid: u32,
    /// The name of the program; empty if it is not visible.
    pub(super) name: String,
    /// Whether the process belongs to the server.
    pub(super) is_own: bool,
}

/// The processes on the GPUs in one reading. `None` if they were not queried, and an error if they
/// cannot be determined.
pub(in crate::telemetry) type Processes = Option<Result<Vec<Found>, String>>;

/// The processes found on the GPUs in all readings so far.
#[derive(Debug, Default)]
pub(in crate::telemetry) struct Sharing {
    readings: u64,
    has_own: bool,
    others: BTreeMap<u32, (String, u64)>,
    unknown: Option<String>,
}

impl Sharing {
    /// Adds one reading.
    pub(in crate::telemetry) fn take(&mut self, processes: Processes) {
        match processes {
            None => {}
            Some(Err(why)) => _ = self.unknown.get_or_insert(why),
            Some(Ok(found)) => {
                self.readings += 1;
                // A process on two GPUs is counted once.
                let found: BTreeMap<u32, Found> = found.into_iter().map(|one| (one.pid, one)).collect();
                for (pid, one) in found {
                    self.has_own |= one.is_own;
                    if !one.is_own && (self.others.len() < MOST || self.others.contains_key(&pid)) {
                        self.others.entry(pid).or_insert((one.name, 0)).1 += 1;
                    }
                }
            }
        }
    }

    /// Combines all readings. Other processes are reported only if the readings also contain processes of the
    /// server. If they do not, the driver reports process ids of another namespace, and no process would seem
    /// to belong to the server.
    pub(in crate::telemetry) fn ended(self, page: u32) -> GpuReadings {
        let Sharing { readings, has_own, others, unknown } = self;
        let hidden = "the server's own processes are not among those reported for its GPUs, as happens in a container";
        let unknown = match (readings, has_own, others.is_empty()) {
            (0, ..) => Some(unknown.unwrap_or_else(|| "no reading reported the processes on the GPUs".to_owned())),
            (_, false, _) => Some(hidden.to_owned()),
            (_, true, true) => unknown,
            (_, true, false) => None,
        };
        let told = others.into_iter().filter(|_| unknown.is_none());
        let others = told.map(|(pid, (name, readings))| OtherProcess { pid, name, readings }).collect();
        GpuReadings { page, readings, others, unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(readings: Vec<Processes>) -> GpuReadings {
        let mut sharing = Sharing::default();
        readings.into_iter().for_each(|one| sharing.take(one));
        sharing.ended(3)
    }

    fn own(pid: u32) -> Found {
        Found { pid, name: "server".to_owned(), is_own: true }
    }

    fn other(pid: u32) -> Found {
        Found { pid, name: "train".to_owned(), is_own: false }
    }

    #[test]
    fn others_are_counted_where_the_server_itself_is_seen() {
        let found = ended(vec![Some(Ok(vec![own(1), other(7), other(7)])), None, Some(Ok(vec![own(1)]))]);
        assert_eq!((found.page, found.readings, &found.unknown), (3, 2, &None));
        assert_eq!(found.others, [OtherProcess { pid: 7, name: "train".to_owned(), readings: 1 }]);
        let alone = ended(vec![Some(Ok(vec![own(1), own(2)]))]);
        assert!(alone.others.is_empty() && alone.unknown.is_none());
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        let hidden = ended(vec![Some(Ok(vec![other(7)]))]);
        assert!(hidden.others.is_empty() && hidden.unknown.unwrap().contains("as happens in a container"));
        assert!(ended(vec![]).unknown.unwrap().contains("no reading"));
        let partly = ended(vec![Some(Err("it hangs".to_owned())), Some(Ok(vec![own(1)]))]);
        assert_eq!(partly.unknown.as_deref(), Some("it hangs"));
        let found = ended(vec![Some(Err("it hangs".to_owned())), Some(Ok(vec![own(1), other(2)]))]);
        assert_eq!((found.unknown, found.others.len()), (None, 1), "earlier observations are kept");
    }
}
