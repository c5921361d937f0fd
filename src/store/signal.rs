//! Handles the signal for the limit on the size of files.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Prevents SIGXFSZ from killing the process, so that a write beyond a file-size limit fails with an error
/// that can be reported.
///
/// tokio's handler stays installed as long as the process lives, even after this small runtime has ended,
/// and needs no unsafe code. Unlike an ignored signal, a handler is not inherited by the servers that we
/// start. Called once, at the start of the program.
pub fn ignore_file_size_signal() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}
