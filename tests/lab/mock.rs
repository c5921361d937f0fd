//! The mock through its socket: a simple test client that shares no code with the program.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::reserved::ReservedPort;
use super::wait_for;

/// Longer than any step takes, even on a shared machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// A running mock, killed on drop.
pub struct Mock {
    pub child: Child,
    pub port: u16,
    folder: tempfile::TempDir,
    _reserved: ReservedPort,
}

impl Mock {
    /// Starts it as fast as possible, with a full log and `flags`.
    pub fn start(flags: &[&str]) -> Mock {
        Mock::start_with(flags, |command| command)
    }

    pub fn start_with(flags: &[&str], change: impl FnOnce(&mut Command) -> &mut Command) -> Mock {
        let (folder, reserved) = (crate::folder(), ReservedPort::of_free());
        let free = reserved.number.to_string();
        let mut command = Command::new(super::program());
        command.args(["mock", "--log-text", "--log"]).arg(folder.path().join("log.jsonl"));
        for (flag, default) in [("--ttft", "0s"), ("--itl", "0s"), ("--port", &free)] {
            if !flags.contains(&flag) {
                command.args([flag, default]);
            }
        }
        command.args(flags).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = change(&mut command).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening on http://127.0.0.1:").and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("not ready: {line:?}"));
        Mock { child, port, folder, _reserved: reserved }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// Sends a request and reads until the server closes.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request(path, body, "Connection: close\r\n").as_bytes()).unwrap();
        Answer::read(&mut stream)
    }

    /// Requests a path without a body.
    pub fn get(&self, path: &str, fields: &str) -> Answer {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n{fields}\r\n").unwrap();
        Answer::read(&mut stream)
    }

    pub fn chat(&self, body: &Value) -> Answer {
        self.post("/v1/chat/completions", body)
    }

    /// Returns the log's lines as soon as `lines` of them are about requests or connections.
    pub fn log(&self, lines: usize) -> Vec<Value> {
        wait_for(&format!("{lines} lines in the log"), || {
            let log = self.log_now();
            (log.len() >= lines).then_some(log)
        })
    }

    /// Returns the log's lines about requests of runs, as soon as there are `lines`: the sweep's own
    /// requests do not count.
    pub fn log_of_runs(&self, lines: usize) -> Vec<Value> {
        wait_for(&format!("{lines} requests of runs in the log"), || {
            let mut log = self.log_now();
            log.retain(|line| line["request_id"] != "sweepline-probe");
            (log.len() >= lines).then_some(log)
        })
    }

    pub fn log_now(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log_path()).unwrap();
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let mut lines: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.remove(0), json!({"log": "sweepline-mock 1"}));
        lines
    }

    pub fn log_path(&self) -> PathBuf {
        self.folder.path().join("log.jsonl")
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Asks the mock to terminate, and waits.
    pub fn terminate(&mut self) -> std::process::ExitStatus {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.wait()
    }

    pub fn wait(&mut self) -> std::process::ExitStatus {
        wait_for("the mock's end", || self.child.try_wait().unwrap())
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until `part` has occurred `count` times.
pub fn read_until(stream: &mut TcpStream, part: &str, count: usize) {
    let mut got = Vec::new();
    while String::from_utf8_lossy(&got).matches(part).count() < count {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        assert!(read > 0, "the stream ended before {count} times {part:?}");
        got.extend_from_slice(&bytes[..read]);
    }
}

pub fn request(path: &str, body: &Value, fields: &str) -> String {
    let body = body.to_string();
    format!("POST {path} HTTP/1.1\r\nHost: mock\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len())
}

/// Returns a streamed chat of six tokens, with usage.
pub fn chat() -> Value {
    json!({
        "model": "m", "stream": true, "max_tokens": 6, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "Say it, please."}],
    })
}

/// Returns `value` with `fields` inserted.
pub fn with(mut value: Value, fields: &Value) -> Value {
    for (name, field) in fields.as_object().unwrap() {
        value[name] = field.clone();
    }
    value
}

/// The whole response on a connection.
pub struct Answer {
    pub head: String,
    /// The bytes after the head, as on the wire.
    pub raw: Vec<u8>,
    /// The error that ended reading, if it was not the end of the stream.
    pub error: Option<ErrorKind>,
}

impl Answer {
    pub fn read(stream: &mut TcpStream) -> Answer {
        let mut bytes = Vec::new();
        let error = stream.read_to_end(&mut bytes).err().map(|error| error.kind());
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let raw = bytes.split_off(end);
        Answer { head: String::from_utf8(bytes).unwrap(), raw, error }
    }

    pub fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {:?}", self.head)).parse().unwrap()
    }

    /// Returns the HTTP chunks, and whether the last one arrived.
    pub fn chunks(&self) -> (Vec<&[u8]>, bool) {
        assert!(self.head.contains("transfer-encoding: chunked"), "{}", self.head);
        let (mut chunks, mut rest) = (Vec::new(), self.raw.as_slice());
        while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            if size == 0 {
                assert_eq!(rest, b"0\r\n\r\n");
                return (chunks, true);
            }
            chunks.push(&rest[line + 2..line + 2 + size]);
            assert_eq!(&rest[line + 2 + size..][..2], b"\r\n");
            rest = &rest[line + 4 + size..];
        }
        assert!(rest.is_empty(), "half a chunk: {rest:?}");
        (chunks, false)
    }

    pub fn body(&self) -> Vec<u8> {
        if self.head.contains("transfer-encoding: chunked") { self.chunks().0.concat() } else { self.raw.clone() }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body()).unwrap()
    }

    /// Returns the contents of the `data:` lines.
    pub fn data(&self) -> Vec<String> {
        self.text().lines().filter_map(|line| line.strip_prefix("data: ").map(str::to_owned)).collect()
    }

    /// Returns those that are JSON.
    pub fn events(&self) -> Vec<Value> {
        self.data().iter().filter_map(|data| serde_json::from_str(data).ok()).collect()
    }

    /// Returns the texts of a stream under `field` of its deltas, without nulls.
    pub fn deltas(&self, field: &str) -> Vec<String> {
        let text = |event: &Value| event["choices"][0]["delta"][field].as_str().map(str::to_owned);
        self.events().iter().filter_map(text).collect()
    }
}
