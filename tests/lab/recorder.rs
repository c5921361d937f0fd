//! A server that records every request, byte for byte, and what TLS said about its connection. It listens on
//! TCP or on a Unix socket, with or without TLS. It shares no code with the program.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// Returns the folder with the certificates: `ca.pem`, which signed `gateway.pem` (for gw.example and localhost)
/// and `client.pem`, and the self-signed `own.pem` (for 127.0.0.1); their keys end with `.key`.
pub fn certificates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tls")
}

/// How a server responds.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The path before the calls of the API. Other paths return 404, except `/health` and `/hook`, which return 200.
    pub base: String,
    /// The status of the list of models.
    pub models: u16,
    /// The status and the `Location` of every response; `None` to respond normally.
    pub redirect: Option<(u16, String)>,
    /// Whether only streams are redirected.
    pub redirects_streams: bool,
    /// The name of the server's certificate; `None` without TLS.
    pub certificate: Option<&'static str>,
    /// Whether clients must present a certificate that `ca.pem` signed.
    pub asks_clients: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            base: "/v1".to_owned(),
            models: 200,
            redirect: None,
            redirects_streams: false,
            certificate: None,
            asks_clients: false,
        }
    }
}

impl Rules {
    /// Returns the rules of an API at another path.
    pub fn at(base: &str) -> Rules {
        Rules { base: base.to_owned(), ..Rules::default() }
    }
}

/// A request, and what TLS said about its connection.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The head, as it was sent.
    pub head: String,
    pub body: String,
    /// The server name that the client sent (SNI).
    pub sni: Option<String>,
    /// Whether the client presented a certificate.
    pub has_certificate: bool,
}

impl Recorded {
    /// Returns method and target: the request line without the version.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1")
    }

    /// Returns the values of a header field.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.filter(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }

    /// Whether the request is measured, rather than part of a probe or check.
    pub fn is_measured(&self) -> bool {
        self.line().starts_with("POST") && self.fields("x-request-id") != ["sweepline-probe"]
    }
}

type Log = Arc<Mutex<Vec<Recorded>>>;

/// A running server, which is stopped on drop.
pub struct Recorder {
    place: Place,
    log: Log,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Clone)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Recorder {
    /// Starts a server on a port of the loopback interface.
    pub fn start(rules: Rules) -> Recorder {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let place = Place::Tcp(listener.local_addr().unwrap());
        Recorder::on(place, rules, move || {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        })
    }

    /// Starts a server on a Unix socket.
    pub fn on_socket(path: &Path, rules: Rules) -> Recorder {
        let listener = UnixListener::bind(path).unwrap();
        Recorder::on(Place::Unix(path.to_owned()), rules, move || {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            Ok(Box::new(stream))
        })
    }

    fn on(place: Place, rules: Rules, accept: impl Fn() -> io::Result<Box<dyn Wire>> + Send + 'static) -> Recorder {
        let (log, over): (Log, Arc<AtomicBool>) = Default::default();
        let (theirs, end) = (Arc::clone(&log), Arc::clone(&over));
        let tls = rules.certificate.map(|name| Arc::new(tls(name, rules.asks_clients)));
        let rules = Arc::new(rules);
        let accepting = std::thread::spawn(move || {
            while let Ok(stream) = accept() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let (rules, log, tls) = (Arc::clone(&rules), Arc::clone(&theirs), tls.clone());
                std::thread::spawn(move || {
                    // A client that closes its connection is no failure of the server.
                    let _ = match tls {
                        None => serve(stream, &rules, &log, |_| (None, false)),
                        Some(config) => {
                            let stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                            let said = |stream: &StreamOwned<ServerConnection, Box<dyn Wire>>| {
                                let sni = stream.conn.server_name().map(str::to_owned);
                                (sni, stream.conn.peer_certificates().is_some())
                            };
                            serve(stream, &rules, &log, said)
                        }
                    };
                });
            }
        });
        Recorder { place, log, over, accepting: Some(accepting) }
    }

    /// Returns the port of a server that listens on TCP.
    pub fn port(&self) -> u16 {
        match &self.place {
            Place::Tcp(address) => address.port(),
            Place::Unix(path) => panic!("the server listens on {}", path.display()),
        }
    }

    /// Returns the requests so far, in the order of arrival.
    pub fn log(&self) -> Vec<Recorded> {
        self.log.lock().unwrap().clone()
    }

    /// Returns the request line of each kind of request, without the version, sorted.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.log().iter().map(|request| request.line().to_owned()).collect();
        lines.sort();
        lines.dedup();
        lines
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let is_woken = match &self.place {
            Place::Tcp(address) => TcpStream::connect(address).is_ok(),
            Place::Unix(path) => UnixStream::connect(path).is_ok(),
        };
        if let Some(accepting) = self.accepting.take().filter(|_| is_woken && !std::thread::panicking()) {
            accepting.join().unwrap();
        }
    }
}

/// Both directions of a connection.
pub trait Wire: Read + Write + Send {}

impl<T: Read + Write + Send> Wire for T {}

fn tls(name: &str, asks_clients: bool) -> ServerConfig {
    let file = |end: &str| certificates().join(format!("{name}.{end}"));
    let chain = vec![CertificateDer::from_pem_file(file("pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    if !asks_clients {
        return builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    }
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates().join("ca.pem")).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    builder.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap()
}

/// Serves the requests of one connection.
fn serve<S: Read + Write>(
    mut stream: S,
    rules: &Rules,
    log: &Log,
    said: impl Fn(&S) -> (Option<String>, bool),
) -> io::Result<()> {
    while let Some((head, body)) = read_request(&mut stream)? {
        let (sni, has_certificate) = said(&stream);
        let response = respond(rules, &head, &body);
        log.lock().unwrap().push(Recorded { head, body, sni, has_certificate });
        stream.write_all(response.as_bytes())?;
        stream.flush()?;
    }
    Ok(())
}

/// Reads a request: its head without the empty line, and its body. `None` if the connection has ended.
pub fn read_request(stream: &mut impl Read) -> io::Result<Option<(String, String)>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap().trim_end().to_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(Some((head, String::from_utf8(body).unwrap())))
}

fn respond(rules: &Rules, head: &str, body: &str) -> String {
    let is_stream = body.contains(r#""stream":true"#);
    if let Some((status, location)) = rules.redirect.as_ref().filter(|_| is_stream || !rules.redirects_streams) {
        return format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let path = target.split('?').next().unwrap();
    let json = |status: u16, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    if matches!(path, "/health" | "/hook") {
        return json(200, "{}");
    }
    match (method, path.strip_prefix(rules.base.as_str())) {
        ("GET", Some("/models")) if rules.models == 200 => json(200, r#"{"data":[{"id":"m"}]}"#),
        ("GET", Some("/models")) => json(rules.models, r#"{"error":{"message":"no list for you"}}"#),
        ("POST", Some("/chat/completions")) if is_stream => stream(),
        ("POST", Some("/chat/completions")) => json(
            200,
            r#"{"model":"m","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#,
        ),
        _ => json(404, r#"{"error":{"message":"no such page"}}"#),
    }
}

/// A stream of eight tokens.
fn stream() -> String {
    let token = |at| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"w{at} \"}}}}]}}\n\n");
    let tokens: String = (0..8).map(token).collect();
    let usage =
        r#"{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":8}}"#;
    let body = format!("{tokens}data: {usage}\n\ndata: [DONE]\n\n");
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}")
}
