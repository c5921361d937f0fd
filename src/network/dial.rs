//! Opens connections along a route, and measures how long each step takes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::route::Route;
use super::stream::Stream;
use crate::tls;
use crate::units::Proxy;

/// The largest head of a proxy's response that is read, in bytes.
const LARGEST_HEAD: usize = 16 << 10;

/// A connection on which nothing has been sent to the server yet.
#[derive(Debug)]
pub struct Dialed {
    /// The connection: to the server, or through a proxy's tunnel.
    pub stream: Stream,
    /// Duration of the name lookup; `None` if there was none.
    pub dns: Option<Duration>,
    /// Duration until the connection was open. With a proxy that opens a tunnel, this includes the tunnel.
    pub connect: Duration,
}

/// Opens a connection along a route. This has no time limit; the caller must set one.
///
/// # Errors
///
/// Fails if the server or the proxy cannot be reached, or if the proxy refuses to open a tunnel.
pub async fn dial(route: &Route, http2: bool) -> io::Result<Dialed> {
    if let Some(socket) = route.socket() {
        let begin = Instant::now();
        let stream = UnixStream::connect(socket).await.map_err(|error| {
            let text = format!("the socket {}: {error}", socket.display());
            with_text(error, text)
        })?;
        return Ok(Dialed { stream: Stream::Unix(stream), dns: None, connect: begin.elapsed() });
    }
    let proxied = |error: io::Error| match route.proxy() {
        Some(proxy) => {
            let text = format!("the proxy {proxy}: {error}");
            with_text(error, text)
        }
        None => error,
    };
    let (addresses, dns) = resolve(route.tcp()).await.map_err(proxied)?;
    let begin = Instant::now();
    let mut stream = TcpStream::connect(&addresses[..]).await.map_err(proxied)?;
    stream.set_nodelay(true)?;
    if let Some(proxy) = route.proxy().filter(|_| route.forwarding_proxy(http2).is_none()) {
        open_tunnel(&mut stream, proxy, route).await?;
    }
    Ok(Dialed { stream: Stream::Tcp(stream), dns, connect: begin.elapsed() })
}

/// Replaces the text of an error, unless the error is one of this machine's limits, which are recognized by
/// their number.
fn with_text(error: io::Error, text: String) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL) => error,
        _ => io::Error::new(error.kind(), text),
    }
}

/// Looks up the addresses of a host. Also returns how long that took; `None` if the host is an IP address.
async fn resolve((host, port): (&str, u16)) -> io::Result<(Vec<SocketAddr>, Option<Duration>)> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok((vec![(address, port).into()], None));
    }
    let begin = Instant::now();
    let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok((found, Some(begin.elapsed())))
}

/// Asks a proxy to open a tunnel to the server (RFC 9110, section 9.3.6).
async fn open_tunnel(stream: &mut TcpStream, proxy: &Proxy, route: &Route) -> io::Result<()> {
    let address = route.address();
    let host = address.url().host_str().unwrap_or_default();
    let server = format!("{host}:{}", address.port());
    let authorization = match proxy.authorization() {
        Some(value) => format!("proxy-authorization: {value}\r\n"),
        None => String::new(),
    };
    let user_agent = concat!("user-agent: sweepline/", env!("CARGO_PKG_VERSION"));
    let request = format!("CONNECT {server} HTTP/1.1\r\nhost: {server}\r\n{user_agent}\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let head = head_of_response(stream).await.map_err(|error| {
        let text = format!("the proxy {proxy} opened no tunnel to {server}: {error}");
        with_text(error, text)
    })?;
    let line = head.lines().next().unwrap_or_default();
    let status = line.split(' ').nth(1).unwrap_or_default();
    if status.starts_with('2') {
        return Ok(());
    }
    let reason = line.split_once(' ').map_or(line, |(_, reason)| reason);
    let remedy = match status {
        "407" => "; write its address with user and password into a secret: `proxy: { secret: env:NAME }`",
        _ => "",
    };
    let text = format!("the proxy {proxy} opened no tunnel to {server}: HTTP {reason}{remedy}");
    Err(io::Error::new(io::ErrorKind::ConnectionRefused, text))
}

/// Reads the head of a response, and not one byte more, because the bytes after it come from the server.
async fn head_of_response(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while head.len() < LARGEST_HEAD {
        let seen = stream.peek(&mut buffer).await?;
        if seen == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
        }
        let before = head.len();
        head.extend_from_slice(&buffer[..seen]);
        let end = head.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        let taken = end.unwrap_or(head.len()) - before;
        stream.read_exact(&mut buffer[..taken]).await?;
        if let Some(end) = end {
            head.truncate(end);
            return Ok(String::from_utf8_lossy(&head).into_owned());
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the head of its response is larger than 16 KiB"))
}

/// A connection over which HTTP is spoken, with or without TLS.
pub trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// A connection over which HTTP can be spoken.
pub struct Opened {
    /// The connection.
    pub transport: Box<dyn Transport>,
    /// Duration until the connection was open, without the name lookup and TLS.
    pub connect: Duration,
    /// Duration of the TLS handshake; `None` without TLS.
    pub tls: Option<Duration>,
}

/// Opens a connection along a route, with TLS if `tls` is given. This has no time limit; the caller must set
/// one.
///
/// # Errors
///
/// Fails as [`dial`] does, or if the TLS handshake fails.
pub async fn open(route: &Route, http2: bool, tls: Option<&(TlsConnector, ServerName<'static>)>) -> io::Result<Opened> {
    let Dialed { stream, connect, .. } = dial(route, http2).await?;
    let Some((connector, name)) = tls else {
        return Ok(Opened { transport: Box::new(stream), connect, tls: None });
    };
    let begin = Instant::now();
    let stream = connector.connect(name.clone(), stream).await?;
    if http2 && stream.get_ref().1.alpn_protocol() != Some(tls::HTTP2) {
        return Err(io::Error::other("the server did not accept HTTP/2 (ALPN)"));
    }
    Ok(Opened { transport: Box::new(stream), connect, tls: Some(begin.elapsed()) })
}
