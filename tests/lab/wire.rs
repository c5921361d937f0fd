//! An independent view of the wire: a TCP proxy that records every byte, and a simple parser of those
//! bytes. It shares no code with the program, so that a bug in the program's HTTP or SSE code is not
//! repeated here.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// One connection: the bytes from the client and from the server.
#[derive(Default)]
struct Tape {
    up: Vec<u8>,
    down: Vec<u8>,
}

/// A proxy on a free port. It changes nothing and records everything.
pub struct Proxy {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<Vec<Call>>>,
}

/// An open connection.
struct Call {
    tape: Arc<Mutex<Tape>>,
    sockets: [TcpStream; 2],
    threads: [JoinHandle<()>; 2],
}

impl Proxy {
    /// Starts a proxy in front of the server at `port`.
    pub fn start(port: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let acceptor = thread::spawn(move || {
            let mut calls = Vec::new();
            while let Ok((client, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                calls.push(Call::start(client, port));
            }
            calls
        });
        Proxy { address, over, acceptor: Some(acceptor) }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Ends every connection and parses the recording.
    pub fn finish(mut self) -> Vec<Exchange> {
        self.stop().into_iter().flat_map(|tape| exchanges(&tape)).collect()
    }

    fn stop(&mut self) -> Vec<Tape> {
        let Some(acceptor) = self.acceptor.take() else { return Vec::new() };
        self.over.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then notices that the test has ended.
        drop(TcpStream::connect(self.address));
        let calls = acceptor.join().unwrap_or_default();
        calls.into_iter().map(Call::end).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Call {
    fn start(client: TcpStream, port: u16) -> Call {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server accepts connections");
        let tape = Arc::new(Mutex::new(Tape::default()));
        let sockets = [client, server].map(|socket| {
            socket.set_nodelay(true).unwrap();
            socket
        });
        let copy = |from: usize, to: usize, side: fn(&mut Tape) -> &mut Vec<u8>| {
            let (mut from, mut to) = (sockets[from].try_clone().unwrap(), sockets[to].try_clone().unwrap());
            let tape = Arc::clone(&tape);
            thread::spawn(move || {
                let mut bytes = [0; 16 << 10];
                while let Ok(read @ 1..) = from.read(&mut bytes) {
                    // Data is recorded before it is forwarded, so bytes that the peer received are always
                    // in the recording.
                    side(&mut tape.lock().unwrap()).extend_from_slice(&bytes[..read]);
                    if to.write_all(&bytes[..read]).is_err() {
                        // The reader is gone, and the writer must notice that.
                        let _ = from.shutdown(Shutdown::Both);
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Write);
            })
        };
        let threads = [copy(0, 1, |tape| &mut tape.up), copy(1, 0, |tape| &mut tape.down)];
        Call { tape, sockets, threads }
    }

    fn end(self) -> Tape {
        let Call { tape, sockets, threads } = self;
        for socket in &sockets {
            // This fails if the connection has already ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        std::mem::take(&mut tape.lock().unwrap())
    }
}

/// A request and its response.
#[derive(Debug)]
pub struct Exchange {
    pub head: Head,
    pub body: Vec<u8>,
    /// `None` if not even the head of a response arrived.
    pub response: Option<Response>,
}

/// The first line and the fields of a request or a response, names in lower case.
#[derive(Debug)]
pub struct Head {
    pub line: String,
    pub fields: BTreeMap<String, String>,
}

/// A response, whose body is stored without framing.
#[derive(Debug)]
pub struct Response {
    pub head: Head,
    pub body: Vec<u8>,
    /// Whether the body ended as its framing requires. Always true if the end of the connection
    /// ends the body.
    pub is_whole: bool,
}

/// The content of a response.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    /// Content of each token event, in order.
    pub content: Vec<String>,
    /// Reasoning of each token event, in order.
    pub reasoning: Vec<String>,
    pub finish_reason: Option<String>,
    pub prompt_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Whether the response contains a mark of its end.
    pub is_done: bool,
}

impl Exchange {
    pub fn id(&self) -> &str {
        self.head.fields.get("x-request-id").map_or("", String::as_str)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn status(&self) -> Option<u16> {
        self.response.as_ref()?.head.line.split(' ').nth(1)?.parse().ok()
    }

    /// Parses the part of the response that arrived.
    pub fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        let Some(response) = &self.response else { return answer };
        if response.head.fields.get("content-type").is_some_and(|kind| kind.contains("event-stream")) {
            // A stream that was cut off may end inside a character; complete events before that are valid
            // text.
            let text = String::from_utf8_lossy(&response.body).replace("\r\n", "\n");
            let events: Vec<&str> = text.split("\n\n").collect();
            for event in &events[..events.len() - 1] {
                let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                match data.join("\n").trim() {
                    "" => {}
                    "[DONE]" => answer.is_done = true,
                    json => answer.take(&serde_json::from_str(json).unwrap_or_else(|_| panic!("not JSON: {json}"))),
                }
            }
        } else if let Ok(json) = serde_json::from_slice(&response.body) {
            answer.take(&json);
            answer.is_done = response.is_whole;
        }
        answer
    }
}

impl Answer {
    fn take(&mut self, json: &Value) {
        let choice = &json["choices"][0];
        let speech = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        let first = |values: [&Value; 2]| {
            values.iter().filter_map(|value| value.as_str()).find(|text| !text.is_empty()).unwrap_or("").to_owned()
        };
        let content = first([&speech["content"], &choice["text"]]);
        let reasoning = first([&speech["reasoning_content"], &speech["reasoning"]]);
        if !content.is_empty() || !reasoning.is_empty() {
            self.content.push(content);
            self.reasoning.push(reasoning);
        }
        let usage = &json["usage"];
        self.finish_reason = choice["finish_reason"].as_str().map(str::to_owned).or(self.finish_reason.take());
        self.prompt_tokens = usage["prompt_tokens"].as_u64().or(self.prompt_tokens);
        self.output_tokens = usage["completion_tokens"].as_u64().or(self.output_tokens);
    }

    /// Returns the column `text_digest` for a response of which `events` token events were read.
    pub fn digest(&self, events: usize) -> Option<String> {
        let text = [self.content[..events].concat(), self.reasoning[..events].concat()].concat();
        let hash = Sha256::digest(text.as_bytes());
        (!text.is_empty()).then(|| hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Splits a connection into its successive requests and responses.
fn exchanges(tape: &Tape) -> Vec<Exchange> {
    let (mut up, mut down) = (tape.up.as_slice(), tape.down.as_slice());
    let mut found = Vec::new();
    while let Some(head) = head(&mut up) {
        let length = head.fields.get("content-length").map_or(0, |length| length.parse().unwrap());
        let body = take(&mut up, length);
        let response = self::head(&mut down).map(|head| response(head, &mut down));
        if response.is_none() {
            // The head is incomplete because the connection ended there.
            down = &[];
        }
        found.push(Exchange { head, body, response });
    }
    assert!(up.is_empty(), "half a head of a request: {:?}", String::from_utf8_lossy(up));
    assert!(down.is_empty(), "more bytes than requested: {:?}", String::from_utf8_lossy(down));
    found
}

fn response(head: Head, down: &mut &[u8]) -> Response {
    if let Some(length) = head.fields.get("content-length") {
        let length = length.parse().unwrap();
        let body = take(down, length);
        return Response { is_whole: body.len() == length, head, body };
    }
    if head.fields.get("transfer-encoding").is_none_or(|coding| coding != "chunked") {
        let body = take(down, usize::MAX);
        return Response { head, body, is_whole: true };
    }
    let (mut body, mut is_whole) = (Vec::new(), false);
    while let Some(end) = down.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&down[..end]).unwrap(), 16).unwrap();
        *down = &down[end + 2..];
        body.extend(take(down, size));
        take(down, 2);
        if size == 0 {
            is_whole = true;
            break;
        }
    }
    if !is_whole {
        // The chunk size is incomplete because the connection ended there.
        *down = &[];
    }
    Response { head, body, is_whole }
}

fn head(bytes: &mut &[u8]) -> Option<Head> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = String::from_utf8(take(bytes, end + 4)).unwrap();
    let mut lines = text.trim_end().lines();
    let line = lines.next()?.to_owned();
    let field = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    Some(Head { line, fields: lines.map(field).collect() })
}

/// Removes at most `length` bytes from the front.
fn take(bytes: &mut &[u8], length: usize) -> Vec<u8> {
    let (front, rest) = bytes.split_at(length.min(bytes.len()));
    *bytes = rest;
    front.to_vec()
}
