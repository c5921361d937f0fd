//! A test server that responds to the probe and then passes on every connection as it was accepted, before
//! any byte is read from it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use lab::DEADLINE;

/// A running server, stopped on drop with all its connections.
pub struct Raw {
    pub port: u16,
    over: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    accepting: Option<JoinHandle<()>>,
}

impl Raw {
    /// Serves each connection after the probe's with `serve`, in a separate thread. A connection stays open
    /// until its end is written or the server is dropped.
    pub fn start(serve: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Raw {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (over, streams): (Arc<AtomicBool>, Arc<Mutex<Vec<TcpStream>>>) = Default::default();
        let (end, theirs, serve) = (Arc::clone(&over), Arc::clone(&streams), Arc::new(serve));
        let accepting = std::thread::spawn(move || {
            let mut probed = false;
            while let Ok((mut stream, _)) = listener.accept() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                stream.set_read_timeout(Some(DEADLINE)).unwrap();
                stream.set_write_timeout(Some(DEADLINE)).unwrap();
                if !probed {
                    probed = answer_probe(&mut stream);
                    continue;
                }
                theirs.lock().unwrap().push(stream.try_clone().unwrap());
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(&mut stream));
            }
        });
        Raw { port, over, streams, accepting: Some(accepting) }
    }

    /// Returns the number of connections after the probe's so far.
    pub fn connections(&self) -> usize {
        self.streams.lock().unwrap().len()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(accepting) = self.accepting.take().filter(|_| !std::thread::panicking()) {
            accepting.join().unwrap();
        }
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Reads the head of a request and no byte after it; in lower case. Empty at the end of the connection.
pub fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return String::new();
        }
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).to_lowercase()
}

/// Reads a request, head and body, which is the only one in transit. Returns whether it belongs to the
/// load, and not to a check that the server is up and idle; `None` if the client gave the connection up, which a
/// check does on a busy machine.
pub fn read_request(stream: &mut TcpStream) -> Option<bool> {
    let (mut bytes, mut part) = (Vec::new(), [0; 8192]);
    let whole = |bytes: &[u8]| {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        Some(end + length(&String::from_utf8_lossy(&bytes[..end]).to_lowercase()))
    };
    while whole(&bytes).is_none_or(|whole| bytes.len() < whole) {
        let read = stream.read(&mut part).unwrap();
        if read == 0 {
            return None;
        }
        bytes.extend_from_slice(&part[..read]);
    }
    Some(!String::from_utf8_lossy(&bytes).contains("x-request-id: sweepline-probe"))
}

/// Returns the length of the body that a head announces.
fn length(head: &str) -> usize {
    head.split("content-length: ").nth(1).map_or(0, |rest| rest.split('\r').next().unwrap().parse().unwrap())
}

/// The response to every request of a probe.
pub const PROBE_ANSWER: &str =
    r#"{"data":[{"id":"tiny"}],"choices":[{"message":{"content":"hi"}}],"usage":{"completion_tokens":1}}"#;

/// Responds to all requests of the probe on this connection; returns whether the last one, the generation,
/// was among them.
pub fn answer_probe(stream: &mut TcpStream) -> bool {
    loop {
        let head = read_head(stream);
        if head.is_empty() {
            return false;
        }
        let mut body = vec![0; length(&head)];
        let answer = PROBE_ANSWER;
        if stream.read_exact(&mut body).is_err()
            || write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).is_err()
        {
            return false;
        }
        if head.starts_with("post") {
            return true;
        }
    }
}
