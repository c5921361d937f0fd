//! The log of actual events, with one JSON line per request. A separate thread writes it, so that no stream
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

/// How often the thread writes the collected lines. A line must be in the file within 100 ms, so this is
/// half of that time.
const EVERY: Duration = Duration::from_millis(50);

/// One line of the log. All instants are in nanoseconds on the monotonic clock, and null if the event never
/// happened.
#[derive(Debug, Default, Serialize)]
pub(super) struct Line {
    /// Number of the generation request in the order of arrival, counted from 1; null for other paths and
    /// for refused connections.
    pub(super) n: Option<u64>,
    /// Number of the connection in the order of acceptance, counted from 1.
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
    /// The name of the API, such as `chat` or `completions`.
    pub(super) api: Option<&'static str>,
    /// The requested model.
    pub(super) model: Option<String>,
    /// Whether a stream was requested.
    pub(super) stream: Option<bool>,
    /// When the first byte of the request arrived. This is the arrival of the newest segment in the read
    /// that contained the byte, or the time at which that read returned (see `arrival_stamp`). For a
    /// refused connection, this is when it was accepted.
    pub(super) arrival_ns: Option<u64>,
    /// When the last byte of the request arrived, determined like `arrival_ns`.
    pub(super) body_ns: Option<u64>,
    /// The source of the timestamps `arrival_ns` and `body_ns`: `kernel` if the kernel recorded the arrival
    /// of the segments (`SO_TIMESTAMPNS`), and `user` if the kernel's timestamp for at least one of them was
    /// missing or impossible; in that case, the time at which the read returned was used.
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
    /// Number of tokens of the prompt, including those of the chat template.
    pub(super) prompt_tokens: Option<u64>,
    /// Number of leading tokens of the prompt that were found in the prefix cache; null if the request got
    /// no slot.
    pub(super) cached_tokens: Option<u64>,
    /// `max_tokens` of the request.
    pub(super) requested_tokens: Option<u32>,
    /// Number of tokens of the response that were passed to the kernel.
    pub(super) output_tokens: u32,
    /// `stop` or `length`; null if the response was not completed.
    pub(super) finish_reason: Option<&'static str>,
    /// SHA-256 over the texts of the prompt (the contents of the messages), each followed by a line feed.
    pub(super) prompt_sha256: Option<String>,
    /// The kind of the fault that occurred.
    pub(super) fault: Option<String>,
    /// How the request ended.
    pub(super) outcome: Outcome,
    /// The header fields, by name in lower case, without the key and without fields that every client
    /// sends; only with `--log-text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) headers: Option<BTreeMap<String, String>>,
    /// The request body as received; only with `--log-text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    /// The text of the response, with the reasoning first; only with `--log-text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<String>,
}

/// How a request ended, from the server's perspective.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The whole response was written, even if a fault changed it.
    Complete,
    /// The request was invalid and got an error response.
    Rejected,
    /// The client disconnected first.
    ClientClosed,
    /// A fault ended the request.
    Fault,
    /// The server ended before the request.
    #[default]
    Interrupted,
}

type Lines = Arc<Mutex<Vec<Line>>>;

/// The log to which requests submit their lines. Without a file, the lines are discarded.
#[derive(Clone, Default)]
pub(super) struct Log(Option<Lines>);

impl Log {
    /// Whether lines are written to a file. If not, they need not be filled in.
    pub(super) fn on(&self) -> bool {
        self.0.is_some()
    }

    /// Submits a line to be written.
    pub(super) fn push(&self, line: Line) {
        if let Some(lines) = &self.0 {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }
}

/// A line of the log that is being filled in. The line is submitted when the entry is dropped, so that no
/// path through the code can omit it.
pub(super) struct Entry {
    pub(super) line: Line,
    /// The text of the response so far, escaped as in JSON strings; only with `--log-text`.
    pub(super) answer: Vec<u8>,
    log: Log,
}

impl Entry {
    /// Creates an entry. Its outcome is `interrupted` until another outcome is known.
    pub(super) fn new(log: &Log, line: Line) -> Entry {
        Entry { line, answer: Vec::new(), log: log.clone() }
    }

    /// Whether the line will be written to a file.
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

/// A handle to the thread that writes the file.
pub(super) struct LogWriter {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl LogWriter {
    /// Creates the file, whose first line identifies the format, and starts the thread.
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

    /// Writes the remaining lines and ends the thread. Fails if not all lines could be written.
    pub(super) fn finish(self) -> io::Result<()> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of the log panicked")))
    }
}
