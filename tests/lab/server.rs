//! A test server for cases that the mock cannot reproduce. It responds to the probe and passes every
//! measured request to the test, byte for byte. It shares no code with the program.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::reserved::ReservedPort;

/// A running server, which is stopped on drop.
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
    /// Keeps the port of a server that has stopped listening.
    _reserved: Option<ReservedPort>,
}

impl Server {
    /// Serves the `n`-th measured request (from 0) with `serve`, which writes the response; then the
    /// connection is closed.
    pub fn start(serve: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> Server {
        Server::start_with(|_| {}, serve)
    }

    /// Calls `probed` just before the response to the probe's generation. While `probed` runs, no
    /// connections are accepted. If it takes the listener, the server stops listening.
    pub fn start_with(
        probed: impl Fn(&mut Option<TcpListener>) + Send + Sync + 'static,
        serve: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static,
    ) -> Server {
        let reserved = ReservedPort::of_free();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, reserved.number)).unwrap();
        let mut server = Server::on(listener, probed, serve);
        server._reserved = Some(reserved);
        server
    }

    /// Like `start_with`, on the caller's listener.
    pub fn on(
        listener: TcpListener,
        probed: impl Fn(&mut Option<TcpListener>) + Send + Sync + 'static,
        serve: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static,
    ) -> Server {
        let port = listener.local_addr().unwrap().port();
        let (seen, over): (Arc<Mutex<Vec<String>>>, Arc<AtomicBool>) = Default::default();
        let (theirs, end, serve, number) = (Arc::clone(&seen), Arc::clone(&over), Arc::new(serve), Arc::default());
        let accepting = std::thread::spawn(move || {
            let mut listener = Some(listener);
            while let Some(Ok((mut stream, _))) = listener.as_ref().map(TcpListener::accept) {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                // A limit that is longer than any wait in a test, so that the thread of a failed
                // test ends eventually.
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let Some(mut head) = read_request(&mut stream) else { continue };
                while head.contains("x-request-id: sweepline-probe") {
                    theirs.lock().unwrap().push(head.clone());
                    if head.starts_with("post") {
                        probed(&mut listener);
                    }
                    answer_probe(&mut stream, &head);
                    head = read_request(&mut stream).unwrap_or_default();
                }
                if !head.is_empty() {
                    theirs.lock().unwrap().push(head);
                    let (serve, number): (_, Arc<AtomicUsize>) = (Arc::clone(&serve), Arc::clone(&number));
                    std::thread::spawn(move || serve(number.fetch_add(1, Ordering::SeqCst), &mut stream));
                }
            }
        });
        Server { port, seen, over, accepting: Some(accepting), _reserved: None }
    }

    /// Returns the requests so far in the order of arrival, each as head in lower case and body.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the `x-request-id` of each measured request, sorted.
    pub fn ids(&self) -> Vec<String> {
        let id =
            |head: &String| head.split("x-request-id: ").nth(1).map(|rest| rest.split('\r').next().unwrap().into());
        let mut ids: Vec<String> = self.seen().iter().filter_map(id).collect();
        ids.retain(|id| id != "sweepline-probe");
        ids.sort();
        ids
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread; if the server has stopped listening, the thread has already ended.
        let _ = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take().filter(|_| !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

/// Reads a request: its head in lower case, and its body. `None` at the end of the connection.
pub fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end + 4]).to_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split('\r').next().unwrap().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return Some(head + &String::from_utf8_lossy(&bytes[end + 4..]));
            }
        }
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    }
}

/// Responds to the list of models and to the generation, and repeats the key wherever it can: in the name
/// of the server, of a model and of the responding model.
pub fn answer_probe(stream: &mut TcpStream, head: &str) {
    let key = head.split("authorization: bearer ").nth(1).map_or("", |rest| rest.split('\r').next().unwrap());
    let answer = format!(
        r#"{{"data":[{{"id":"id{key}"}}],"model":"{key}","choices":[{{"message":{{"content":"hi"}}}}],"content":[{{"type":"text","text":"hi"}}],"usage":{{"completion_tokens":1}}}}"#
    );
    // The probe may have disconnected.
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nserver: odd {key}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
}

/// Returns a 200 response whose body ends with the connection.
pub fn stream_of(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// Returns one event with a piece of text.
pub fn token(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

/// Returns a complete short response: two tokens, finish reason, `[DONE]`.
pub fn good() -> Vec<u8> {
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    stream_of(&format!("{}{}{finish}", token("Good"), token(" day.")))
}
