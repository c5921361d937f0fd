//! Limits of this process and machine on the number of connections.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Seconds for which a closed connection keeps its port on the side that closed it (Linux: TCP_TIMEWAIT_LEN).
const TIME_WAIT_SECS: f64 = 60.0;
/// Seconds after which the port of a closed connection may be reused, if the kernel allows it.
const REUSE_SECS: f64 = 1.0;

/// The limits of this process and machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// Maximum number of open files of this process; `None` if there is no limit.
    pub files: Option<u64>,
    /// Number of files that are currently open.
    pub open: u64,
    /// Local ports available for connections to one address; `None` if unknown.
    pub ports: Option<u64>,
    /// Seconds for which a closed connection to another machine keeps its port.
    pub(crate) held_remote_secs: f64,
    /// Seconds for which a closed connection to this machine keeps its port.
    pub(crate) held_local_secs: f64,
}

impl Limits {
    /// Reads the limits, assuming that the process has raised its soft limits.
    pub(super) fn read() -> Limits {
        let reuse: u64 = number("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or(0);
        let stamps = number("/proc/sys/net/ipv4/tcp_timestamps").unwrap_or(0) > 0;
        // If tcp_tw_reuse is 1, all connections may reuse ports; if it is 2, only connections within this
        // machine. Reuse requires TCP timestamps.
        let held = |reused: bool| if reused && stamps { REUSE_SECS } else { TIME_WAIT_SECS };
        Limits {
            files: highest(),
            open: fs::read_dir("/proc/self/fd").map_or(16, |files| files.count() as u64),
            ports: ports(),
            held_remote_secs: held(reuse == 1),
            held_local_secs: held(reuse == 1 || reuse == 2),
        }
    }
}

/// Returns the highest limit on open files that this process may set for itself; `None` if there is
/// no limit.
fn highest() -> Option<u64> {
    let hard = getrlimit(Resource::Nofile).maximum;
    // No process can exceed this limit, whatever its own limit is.
    let system = number("/proc/sys/fs/nr_open");
    [hard, system].into_iter().flatten().min()
}

/// Raises the soft limit of open files, because each connection is a file and the usual soft limit of 1 024
/// is far below the hard limit.
pub(super) fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this is not allowed, the limit stays as it was; connections beyond it fail with an error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: highest(), maximum });
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the number of local ports that the system uses for outgoing connections. Connections to
/// different addresses may share a port.
fn ports() -> Option<u64> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let reserved = fs::read_to_string("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    free_ports(&range, &reserved)
}

fn free_ports(range: &str, reserved: &str) -> Option<u64> {
    let mut borders = range.split_whitespace().map(|port| port.parse::<u64>().ok());
    let (low, high) = (borders.next()??, borders.next()??);
    let taken: u64 = reserved
        .trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse::<u64>().ok()?.max(low), last.parse::<u64>().ok()?.min(high));
            Some((last + 1).saturating_sub(first))
        })
        .sum();
    Some((high + 1).saturating_sub(low).saturating_sub(taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_counted_without_the_reserved_ones() {
        assert_eq!(free_ports("32768\t60999\n", "\n"), Some(28_232));
        assert_eq!(free_ports("32768\t60999\n", "8080,40000-40099,60999-65000\n"), Some(28_232 - 101));
        assert_eq!(free_ports("", ""), None);
    }

    #[test]
    fn this_machine_has_limits() {
        let limits = Limits::read();
        assert!(limits.files.is_none_or(|files| files > limits.open), "{limits:?}");
        assert!(limits.held_local_secs <= limits.held_remote_secs, "{limits:?}");
    }
}
