//! The path of this program, which starts itself again: as the embedded mock, as a supervisor, as a job.

use std::io;
use std::path::PathBuf;

/// Returns the path of this program. Linux states it in `/proc`; without `/proc`, as in a bare chroot, it is
/// the path by which the program was started.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| started_by().unwrap_or(Err(error)))
}

/// Returns the path that the kernel recorded when it started this process. It may be relative to the
/// current folder, which the program never changes.
#[cfg(target_os = "linux")]
fn started_by() -> Option<io::Result<PathBuf>> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let path = rustix::param::linux_execfn();
    (!path.is_empty()).then(|| std::path::absolute(OsStr::from_bytes(path.to_bytes())))
}

#[cfg(not(target_os = "linux"))]
fn started_by() -> Option<io::Result<PathBuf>> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn both_ways_lead_to_the_same_file() {
        let started = started_by().unwrap().unwrap();
        assert_eq!(started.canonicalize().unwrap(), own_program().unwrap().canonicalize().unwrap());
    }
}
