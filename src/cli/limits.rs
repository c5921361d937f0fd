//! Limits of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Each connection is a file, and the usual soft limit of 1 024 is far below what the hard limit allows. Gives how many
/// files may be open now.
pub fn raise_file_limit() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where this is not allowed the limit stays as it was; connections beyond it fail and say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
