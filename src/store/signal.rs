//! The signal that comes with a limit on the size of files.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Keeps SIGXFSZ from killing the process, so that a write beyond a file-size limit fails with an error we can tell.
///
/// tokio's handler stays in place for as long as the process lives, beyond this little runtime and without unsafe code;
/// a handler, unlike an ignored signal, is not handed down to the servers that we start. Called once, at the start.
pub fn ignore_file_size_signal() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}
