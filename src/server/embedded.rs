//! The embedded mock server: a separate process of sweepline's own program, which listens on a free port.
//! It is started for the runs that use it.
//!
//! The mock ends when sweepline ends, even after `kill -9`: it holds the read end of a pipe whose write
//! end only sweepline has, and exits when the write end is closed. It is in its own process group, so that
//! Ctrl-C in a terminal reaches only sweepline.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::own_program::own_program;
use crate::plan::MockFigures;

/// Environment variables that the mock's process may need to start or to report an error. None of them
/// contains a secret.
const KEPT: [&str; 6] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "RUST_BACKTRACE",
    "LLVM_PROFILE_FILE",
];

/// A running embedded mock. The process ends when this value is dropped.
#[derive(Debug)]
pub struct Embedded {
    child: Child,
    /// The write end of the pipe. Closing it ends the process; `None` once it has been closed.
    pipe: Option<ChildStdin>,
    url: String,
    alive: Arc<AtomicBool>,
}

/// Why the embedded mock could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the embedded mock did not start: {0}")]
pub struct EmbeddedError(String);

/// Why the embedded mock did not shut down cleanly.
#[derive(Debug, thiserror::Error)]
#[error("the embedded mock did not shut down cleanly: {0}")]
pub struct EndError(String);

impl Embedded {
    /// Starts the mock with the latencies and limits in `figures`, and waits until it listens.
    pub fn start(figures: &MockFigures) -> Result<Embedded, EmbeddedError> {
        Embedded::spawn(figures, None)
    }

    /// Starts the mock, which logs its events to the file `log`. The file is complete after
    /// [`Embedded::end`].
    pub fn with_log(figures: &MockFigures, log: &Path) -> Result<Embedded, EmbeddedError> {
        Embedded::spawn(figures, Some(log))
    }

    fn spawn(figures: &MockFigures, log: Option<&Path>) -> Result<Embedded, EmbeddedError> {
        let wrong = |error: std::io::Error| EmbeddedError(error.to_string());
        let program = own_program().map_err(wrong)?;
        let mut child = Command::new(program)
            // The environment is cleared because the mock does not need it, and it may contain API keys.
            .env_clear()
            .envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .args(arguments(figures))
            .args(log.iter().flat_map(|log| ["--log".as_ref(), log.as_os_str()]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(wrong)?;
        let pipe = child.stdin.take().expect("stdin is piped");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        let read = lines.read_line(&mut line).map_err(wrong);
        let address = line.trim().strip_prefix("listening on ").filter(|address| address.starts_with("http://"));
        let (Ok(_), Some(address)) = (&read, address) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(EmbeddedError(format!("expected its address, got `{}`", line.trim())));
        };
        let alive = Arc::new(AtomicBool::new(true));
        let url = format!("{address}/v1");
        watch(lines, Arc::clone(&alive)).map_err(wrong)?;
        Ok(Embedded { child, pipe: Some(pipe), url, alive })
    }

    /// Returns the base address of the mock's API.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the mock and waits until it has exited with its log completely written.
    pub fn end(mut self) -> Result<(), EndError> {
        self.pipe = None;
        let status = self.child.wait().map_err(|error| EndError(error.to_string()))?;
        if status.success() { Ok(()) } else { Err(EndError(status.to_string())) }
    }

    /// Returns a flag that becomes false when the process has ended.
    pub fn alive(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.alive)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // The process may already have ended, so errors are ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a thread that sets `alive` to false when the process has ended. The thread detects this by the end
/// of the process's output.
fn watch(mut lines: impl BufRead + Send + 'static, alive: Arc<AtomicBool>) -> std::io::Result<()> {
    std::thread::Builder::new().name("mock watch".to_owned()).spawn(move || {
        let _ = std::io::copy(&mut lines, &mut std::io::sink());
        alive.store(false, Ordering::Relaxed);
    })?;
    Ok(())
}

/// Returns the mock's command line for these figures.
fn arguments(figures: &MockFigures) -> Vec<String> {
    let MockFigures { ttft, itl, slots, prefill, prefix_cache, prefix_block, load, jitter, seed } = figures;
    let mut arguments = vec!["mock".to_owned(), "--port=0".to_owned(), "--parent-pipe".to_owned()];
    arguments.extend([
        format!("--ttft={ttft}"),
        format!("--itl={itl}"),
        format!("--slots={slots}"),
        format!("--prefill={prefill}"),
        format!("--load={load}"),
        format!("--jitter={jitter}"),
        format!("--seed={}", seed.0),
    ]);
    arguments.extend(prefix_cache.map(|tokens| format!("--prefix-cache={tokens}")));
    arguments.extend(prefix_block.map(|tokens| format!("--prefix-block={tokens}")));
    arguments
}
