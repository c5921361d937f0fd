//! Handles SIGXFSZ, the signal for exceeding the limit on the size of files.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Prevents SIGXFSZ from killing the process, so that a write beyond a file-size limit fails with an error
/// that can be reported.
///
/// The function installs tokio's signal handler, which needs no unsafe code. The handler remains
/// installed as long as the process lives, even after the runtime that is created here has ended.
/// The servers that we start do not inherit the handler; they would inherit an ignored signal.
/// Called once, at the start of the program.
pub fn ignore_file_size_signal() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}
