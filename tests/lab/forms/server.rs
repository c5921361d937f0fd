//! A server that plays forms and records when it really wrote each piece.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;

use super::{Api, Ending, Form, Piece};
use crate::server::read_request;

/// One response, as it was really sent. All times are since the start of the server.
#[derive(Debug, Clone)]
pub struct Played {
    /// The name of the form.
    pub form: String,
    /// The `x-request-id` of the request.
    pub id: String,
    /// When the request had arrived.
    pub arrived: Duration,
    /// For each piece of the form: when its write began and when it had returned. Pieces are missing at the
    /// end if the client closed the connection.
    pub written: Vec<[Duration; 2]>,
}

/// What the server plays for a request.
struct Playlist {
    /// The forms of each API, in the order in which requests to `/all/v1` receive them.
    forms: BTreeMap<&'static str, Vec<Form>>,
}

/// A running server, stopped on drop. `/NAME/v1` plays the form of this name; `/all/v1` plays all forms of
/// the API in turn, each followed by the first, which is a usual response.
pub struct FormServer {
    pub port: u16,
    log: Arc<Mutex<Vec<Played>>>,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl FormServer {
    /// Starts a server for these forms.
    pub fn start(forms: &[Form]) -> FormServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut playlist = Playlist { forms: BTreeMap::new() };
        for form in forms {
            playlist.forms.entry(form.api.name()).or_default().push(form.clone());
        }
        let (log, over): (Arc<Mutex<Vec<Played>>>, Arc<AtomicBool>) = Default::default();
        let (record, end, playlist) = (Arc::clone(&log), Arc::clone(&over), Arc::new(playlist));
        let begin = Instant::now();
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                // A limit that is longer than any wait in a test, so that the thread of a failed test ends
                // eventually.
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                stream.set_nodelay(true).unwrap();
                let (record, playlist) = (Arc::clone(&record), Arc::clone(&playlist));
                std::thread::spawn(move || serve(stream, &playlist, &record, begin));
            }
        });
        FormServer { port, log, over, accepting: Some(accepting) }
    }

    /// Returns the responses so far, in the order in which their requests arrived.
    pub fn played(&self) -> Vec<Played> {
        let mut played = self.log.lock().unwrap().clone();
        played.sort_by_key(|played| played.arrived);
        played
    }
}

impl Drop for FormServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take().filter(|_| !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

impl Playlist {
    /// Returns the form for a request, by its head; `None` if it is not a request of a run.
    fn form(&self, head: &str, id: &str) -> Option<&Form> {
        let line = head.lines().next()?;
        let forms = self.forms.get(Api::of_request(line)?.name())?;
        let name = line.split('/').nth(1)?;
        if name != "all" {
            return forms.iter().find(|form| form.name == name);
        }
        // The last part of the id is the number of the request in its run.
        let number: usize = id.rsplit('-').next()?.parse().ok()?;
        Some(form_of(forms, number))
    }
}

/// Returns the form that `/all/v1` plays for the `number`-th request.
pub fn form_of(forms: &[Form], number: usize) -> &Form {
    if number.is_multiple_of(2) { &forms[number / 2 % forms.len()] } else { &forms[0] }
}

/// Serves one connection: any number of requests of the sweep itself, then one of a run.
fn serve(mut stream: TcpStream, playlist: &Playlist, log: &Mutex<Vec<Played>>, begin: Instant) {
    while let Some(head) = read_request(&mut stream) {
        let arrived = begin.elapsed();
        let id = head.split("x-request-id: ").nth(1).map_or("", |rest| rest.split('\r').next().unwrap());
        let Some(form) = playlist.form(&head, id).filter(|_| id != "sweepline-probe") else {
            answer_probe(&mut stream);
            continue;
        };
        let written = play(&mut stream, form, begin);
        log.lock().unwrap().push(Played { form: form.name.clone(), id: id.to_owned(), arrived, written });
        if form.ending == Ending::Reset {
            reset(stream);
        }
        return;
    }
}

/// Writes a response, and returns when each piece was written.
fn play(stream: &mut TcpStream, form: &Form, begin: Instant) -> Vec<[Duration; 2]> {
    let framing = if form.chunked { "transfer-encoding: chunked\r\n" } else { "" };
    let head = format!("HTTP/1.1 200 OK\r\n{}\r\n{framing}connection: close\r\n\r\n", form.fields.join("\r\n"));
    let mut written = Vec::new();
    if stream.write_all(head.as_bytes()).is_err() {
        return written;
    }
    for Piece { wait, bytes, .. } in &form.pieces {
        std::thread::sleep(*wait);
        let bytes = match form.chunked {
            true if !bytes.is_empty() => [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat(),
            _ => bytes.clone(),
        };
        let before = begin.elapsed();
        if stream.write_all(&bytes).is_err() {
            return written;
        }
        written.push([before, begin.elapsed()]);
    }
    if form.chunked && form.ending == Ending::Close {
        let _ = stream.write_all(b"0\r\n\r\n");
    }
    written
}

/// Closes a connection with a reset.
fn reset(stream: TcpStream) {
    // What was written must not be discarded by the reset before the client has read it.
    std::thread::sleep(Duration::from_millis(20));
    stream.set_nonblocking(true).unwrap();
    TcpSocket::from_std_stream(stream).set_zero_linger().unwrap();
}

/// Responds to a request of the sweep itself, whatever its API.
fn answer_probe(stream: &mut TcpStream) {
    let answer = r#"{"object":"list","data":[{"id":"tiny"}],"model":"tiny","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"status":"completed"}"#;
    // The probe may have disconnected.
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
        answer.len()
    );
}
