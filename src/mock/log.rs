//! The log of actual events: JSON lines, one per request, written by a separate thread so that no stream
//! waits for the disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use super::arrival::By;

/// How often the thread writes the collected lines: half of the 100 ms within which a line must be in the
/// file.
const EVERY: Duration = Duration::from_millis(50);

/// One line. All instants are nanoseconds on the monotonic clock; null if the event never happened.
#[derive(Debug, Default, Serialize)]
pub(super) struct Line {
    /// Order of arrival among generation requests, from 1; null for every other path and for refused connections.
    pub(super) n: Option<u64>,
    /// The connection, from 1 in order of acceptance.
    pub(super) connection: u64,
    /// The client's port.
    pub(super) peer_port: u16,
    /// The header `x-request-id`.
    pub(super) request_id: Option<String>,
    /// The returned trace id, with `--trace-ids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace_id: Option<String>,
    /// The requested path.
    pub(super) path: Option<String>,
    /// `chat` or `completions`.
    pub(super) api: Option<&'static str>,
    /// The requested model.
    pub(super) model: Option<String>,
    /// Whether a stream was requested.
    pub(super) stream: Option<bool>,
    /// When the first byte arrived: the arrival of the newest segment of the read that brought it, or the
    /// return of that read (see `arrival_stamp`). For a refused connection, when it was accepted.
    pub(super) arrival_ns: Option<u64>,
    /// Arrival of the last byte, in the same way.
    pub(super) body_ns: Option<u64>,
    /// The source of the timestamps `arrival_ns` and `body_ns`: `kernel` if the kernel recorded the arrival
    /// of the segment (`SO_TIMESTAMPNS`), or `user` for the return of the read, if the kernel's timestamp for
    /// one of them was missing or impossible.
    pub(super) arrival_stamp: Option<By>,
    /// When the request got a slot.
    pub(super) slot_ns: Option<u64>,
    /// The instant just before the write call that carried the first token.
    pub(super) first_write_ns: Option<u64>,
    /// The instant just before the write call that carried the last token.
    pub(super) last_write_ns: Option<u64>,
    /// When the last write call returned, or the client was found to have disconnected.
    pub(super) done_ns: Option<u64>,
    /// The HTTP status that was written.
    pub(super) status: Option<u16>,
    /// Tokens of the prompt, including the template.
    pub(super) prompt_tokens: Option<u64>,
    /// Leading tokens of the prompt that were found in the prefix cache; null if the request got no slot.
    pub(super) cached_tokens: Option<u64>,
    /// `max_tokens` of the request.
    pub(super) requested_tokens: Option<u32>,
    /// Tokens passed to the kernel.
    pub(super) output_tokens: u32,
    /// `stop` or `length`; null if the response was not completed.
    pub(super) finish_reason: Option<&'static str>,
    /// SHA-256 over the texts of the prompt (the contents of the messages), each followed by a line feed.
    pub(super) prompt_sha256: Option<String>,
    /// The kind of the fault that occurred.
    pub(super) fault: Option<String>,
    /// How the request ended.
    pub(super) outcome: Outcome,
    /// The header fields, by name in lower case, excluding the key and fields that every client sends; only
    /// with `--log-text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) headers: Option<BTreeMap<String, String>>,
    /// The body as received, with `--log-text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    /// The text of the response, reasoning first, with `--log-text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<String>,
}

/// How a request ended, from the server's perspective.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The whole response was written, even if a fault changed it.
    Complete,
    /// An error response to an invalid request.
    Rejected,
    /// The client disconnected first.
    ClientClosed,
    /// A fault ended it.
    Fault,
    /// The server ended first.
    #[default]
    Interrupted,
}

type Lines = Arc<Mutex<Vec<Line>>>;

/// The log to which requests submit their lines; without a file they are discarded.
#[derive(Clone, Default)]
pub(super) struct Log(Option<Lines>);

impl Log {
    /// Whether lines are kept; lines that will be discarded need not be filled in.
    pub(super) fn on(&self) -> bool {
        self.0.is_some()
    }

    /// Submits a line.
    pub(super) fn push(&self, line: Line) {
        if let Some(lines) = &self.0 {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }
}

/// A line that is being filled in. Dropping it submits it, so that no exit path of a request can omit the
/// line.
pub(super) struct Entry {
    pub(super) line: Line,
    /// The text so far, as in JSON strings, with `--log-text`.
    pub(super) answer: Vec<u8>,
    log: Log,
}

impl Entry {
    /// Creates an entry with the outcome `interrupted`, which stays until another outcome is known.
    pub(super) fn new(log: &Log, line: Line) -> Entry {
        Entry { line, answer: Vec::new(), log: log.clone() }
    }

    /// Whether the line will be kept.
    pub(super) fn kept(&self) -> bool {
        self.log.on()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.answer.is_empty() {
            let json = [b"\"", self.answer.as_slice(), b"\""].concat();
            self.line.answer = serde_json::from_slice(&json).ok();
        }
        self.log.push(std::mem::take(&mut self.line));
    }
}

/// The thread that writes the file.
pub(super) struct LogWriter {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl LogWriter {
    /// Creates the file, with a first line that identifies it.
    pub(super) fn start(path: &Path) -> io::Result<(Log, LogWriter)> {
        let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        file.write_all(b"{\"log\":\"sweepline-mock 1\"}\n")?;
        file.flush()?;
        let lines = Lines::default();
        let taken = Arc::clone(&lines);
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("mock-log".into()).spawn(move || {
            loop {
                let last = stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
                let lines = std::mem::take(&mut *taken.lock().unwrap_or_else(PoisonError::into_inner));
                for line in &lines {
                    serde_json::to_writer(&mut file, line)?;
                    file.write_all(b"\n")?;
                }
                if !lines.is_empty() {
                    file.flush()?;
                }
                if last {
                    return Ok(());
                }
            }
        })?;
        Ok((Log(Some(lines)), LogWriter { stop, thread }))
    }

    /// Writes the remaining lines and returns whether every line was written to the file.
    pub(super) fn finish(self) -> io::Result<()> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of the log panicked")))
    }
}
