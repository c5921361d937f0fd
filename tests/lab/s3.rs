//! A server with the subset of S3 that results on object storage need: objects in memory, and configurable faults.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

/// The only bucket.
const BUCKET: &str = "/bench";
/// Number of objects in a page of a listing. It is low, so that listings have several pages.
const PAGE: usize = 5;

/// A fault of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The server returns `503 SlowDown` for this many requests.
    SlowDown(usize),
    /// The server returns `400 ExpiredToken` for every request, as S3 does.
    Expired,
    /// Every connection ends before a response.
    Away,
}

#[derive(Default)]
struct Inside {
    objects: BTreeMap<String, (Vec<u8>, SystemTime)>,
    /// `METHOD key` of every request that was served without a fault.
    log: Vec<String>,
}

/// The server; it stops when the test ends.
pub struct S3 {
    port: u16,
    inside: Arc<Mutex<Inside>>,
    fault: Arc<Mutex<Fault>>,
}

impl S3 {
    /// Starts a server that either respects conditions or lets every writer create every object.
    pub fn start(is_conditional: bool) -> S3 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (inside, fault) = (Arc::<Mutex<Inside>>::default(), Arc::new(Mutex::new(Fault::None)));
        let (at, how) = (Arc::clone(&inside), Arc::clone(&fault));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (inside, fault) = (Arc::clone(&at), Arc::clone(&how));
                std::thread::spawn(move || while serve(&stream, &inside, &fault, is_conditional).is_some() {});
            }
        });
        S3 { port, inside, fault }
    }

    /// Configures a program to use the server, with a separate cache and short retries.
    pub fn reached_by(&self, command: &mut Command, cache: &std::path::Path) {
        command
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
            .env("AWS_REGION", "us-east-1")
            .env("SWEEPLINE_RETRIES_MS", "1500")
            .env("SWEEPLINE_CACHE", cache);
    }

    pub fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    pub fn fault(&self) -> Fault {
        *self.fault.lock().unwrap()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap()
    }

    /// Returns the keys that begin with this prefix.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        self.inside().objects.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }

    pub fn get(&self, key: &str) -> Vec<u8> {
        self.inside().objects[key].0.clone()
    }

    /// Replaces the bytes of an object.
    pub fn spoil(&self, key: &str, bytes: &[u8]) {
        self.inside().objects.get_mut(key).unwrap().0 = bytes.to_vec();
    }

    /// Removes an object, as a user of the bucket may.
    pub fn remove(&self, key: &str) {
        self.inside().objects.remove(key).unwrap();
    }

    /// Returns the number of requests with a method for keys that begin with this prefix.
    pub fn count(&self, method: &str, prefix: &str) -> usize {
        let begin = format!("{method} {prefix}");
        self.inside().log.iter().filter(|line| line.starts_with(&begin)).count()
    }
}

/// Serves one request; `None` if the connection is over.
fn serve(stream: &TcpStream, inside: &Mutex<Inside>, fault: &Mutex<Fault>, is_conditional: bool) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        (reader.read_line(&mut line).ok()? > 0).then_some(())?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let of = |line: &String| {
            line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_owned())
        };
        lines.iter().find_map(of)
    };
    let length: usize = header("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = lines[0].split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let now = {
        let mut fault = fault.lock().unwrap();
        let now = *fault;
        if let Fault::SlowDown(left) = now {
            *fault = if left > 1 { Fault::SlowDown(left - 1) } else { Fault::None };
        }
        now
    };
    let error = |code: &str| {
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>").into_bytes()
    };
    let (status, body, headers) = match now {
        Fault::Away => return None,
        Fault::SlowDown(_) => ("503 Slow Down", error("SlowDown"), String::new()),
        Fault::Expired => ("400 Bad Request", error("ExpiredToken"), String::new()),
        Fault::None => {
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            let key = path.strip_prefix(BUCKET).unwrap_or("").trim_start_matches('/').to_owned();
            let mut inside = inside.lock().unwrap();
            inside.log.push(format!("{method} {key}"));
            match method.as_str() {
                "PUT" if is_conditional && header("if-none-match").is_some() && inside.objects.contains_key(&key) => {
                    ("412 Precondition Failed", error("PreconditionFailed"), String::new())
                }
                "PUT" => {
                    inside.objects.insert(key, (body, SystemTime::now()));
                    ("200 OK", Vec::new(), "ETag: \"e\"\r\n".to_owned())
                }
                "DELETE" => {
                    inside.objects.remove(&key);
                    ("204 No Content", Vec::new(), String::new())
                }
                "GET" if query.contains("list-type=2") => ("200 OK", list(&inside, query), String::new()),
                "POST" if query.starts_with("delete") => {
                    let text = String::from_utf8(body).unwrap();
                    for key in text.split("<Key>").skip(1).filter_map(|rest| Some(rest.split_once("</Key>")?.0)) {
                        inside.objects.remove(key);
                    }
                    ("200 OK", b"<?xml version=\"1.0\"?><DeleteResult/>".to_vec(), String::new())
                }
                "GET" | "HEAD" => match inside.objects.get(&key) {
                    None => ("404 Not Found", error("NoSuchKey"), String::new()),
                    Some((bytes, written)) => got(bytes, *written, header("range").as_deref()),
                },
                _ => ("405 Method Not Allowed", error("MethodNotAllowed"), String::new()),
            }
        }
    };
    let mut out = stream;
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {length}\r\n{headers}\r\n");
    let mut response = head.into_bytes();
    if method != "HEAD" {
        response.extend_from_slice(&body);
    }
    // One write: the client delays its acknowledgment of the first of two, and the second waits for it.
    out.write_all(&response).ok()
}

fn got(bytes: &[u8], written: SystemTime, range: Option<&str>) -> (&'static str, Vec<u8>, String) {
    let written = jiff::Timestamp::try_from(written).unwrap().strftime("%a, %d %b %Y %H:%M:%S GMT");
    let headers = format!("ETag: \"e\"\r\nLast-Modified: {written}\r\n");
    let range = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let Some((from, to)) = range else { return ("200 OK", bytes.to_vec(), headers) };
    let from: usize = from.parse().unwrap();
    let to = to.parse().unwrap_or(usize::MAX).min(bytes.len().saturating_sub(1));
    if from > to {
        return ("416 Range Not Satisfiable", Vec::new(), headers);
    }
    let headers = format!("{headers}Content-Range: bytes {from}-{to}/{}\r\n", bytes.len());
    ("206 Partial Content", bytes[from..=to].to_vec(), headers)
}

/// Returns a page of a listing.
fn list(inside: &Inside, query: &str) -> Vec<u8> {
    let asked = |name: &str| {
        let of = |part: &str| {
            part.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value.replace("%2F", "/"))
        };
        query.split('&').find_map(of)
    };
    let prefix = asked("prefix").unwrap_or_default();
    let after = asked("continuation-token").unwrap_or_default();
    let mut found = inside.objects.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after).peekable();
    let mut text = String::from("<?xml version=\"1.0\"?><ListBucketResult>");
    let mut last = String::new();
    for (key, (bytes, written)) in found.by_ref().take(PAGE) {
        let written = jiff::Timestamp::try_from(*written).unwrap();
        let written = format!("{written:.0}");
        write!(
            text,
            "<Contents><Key>{key}</Key><LastModified>{written}</LastModified><ETag>e</ETag><Size>{}</Size></Contents>",
            bytes.len()
        )
        .unwrap();
        last.clone_from(key);
    }
    if found.peek().is_some() {
        write!(text, "<NextContinuationToken>{last}</NextContinuationToken>").unwrap();
    }
    text.push_str("</ListBucketResult>");
    text.into_bytes()
}
