//! One connection that the engine owns, and how it is opened. Which of them a request gets is the pool's matter.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::clock::Clock;
use super::io::{Stamped, Stamps};
use super::limit::Timer;
use super::target::Target;

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

type Driver = http1::Connection<TokioIo<Box<dyn Stream>>, Full<Bytes>>;

/// One HTTP/1.1 connection. Large: to be moved in a box. Its driver runs only while a request that uses it polls it.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Option<Driver>,
    /// What its socket saw.
    pub stamps: Rc<Stamps>,
    /// The timer of its last request, for the next one.
    pub timer: Option<Timer>,
}

/// What opening a connection cost, in nanoseconds; none for a step that was not needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opening {
    /// Name lookup.
    pub dns: Option<u64>,
    /// TCP handshake.
    pub connect: Option<u64>,
    /// TLS handshake.
    pub tls: Option<u64>,
}

/// Opens connections to one target.
#[derive(Clone)]
pub struct Connector {
    target: Arc<Target>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    clock: Clock,
}

impl Connector {
    /// A connector to `target`. Errors when the host is no valid name for TLS or the system's certificates cannot be read.
    pub fn new(target: Arc<Target>, clock: Clock) -> io::Result<Connector> {
        let tls = match target.tls {
            true => {
                let name = ServerName::try_from(target.host.clone()).map_err(io::Error::other)?;
                Some((super::tls::connector(target.insecure_tls)?, name))
            }
            false => None,
        };
        Ok(Connector { target, tls, clock })
    }

    /// The run's clock has started.
    pub fn begin(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Host and port of the target.
    pub fn authority(&self) -> &str {
        &self.target.authority
    }

    /// Opens a connection. Not bounded in time: the caller does that.
    pub async fn open(&self) -> io::Result<(Box<Connection>, Opening)> {
        let mut opening = Opening::default();
        let addresses = self.resolve(&mut opening).await?;
        let begin = self.clock.now();
        let stream = TcpStream::connect(&addresses[..]).await?;
        opening.connect = Some(self.clock.now() - begin);
        stream.set_nodelay(true)?;
        let stamps = Stamps::new(self.clock);
        let socket = Stamped::new(stream, Rc::clone(&stamps));
        let io: Box<dyn Stream> = match &self.tls {
            None => Box::new(socket),
            Some((connector, name)) => {
                let begin = self.clock.now();
                let stream = connector.connect(name.clone(), socket).await?;
                opening.tls = Some(self.clock.now() - begin);
                Box::new(stream)
            }
        };
        let (sender, driver) = http1::handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
        let connection = Connection { sender, driver: Some(driver), stamps, timer: None };
        Ok((Box::new(connection), opening))
    }

    async fn resolve(&self, opening: &mut Opening) -> io::Result<Vec<SocketAddr>> {
        let port = self.target.port;
        if let Ok(address) = self.target.host.parse::<IpAddr>() {
            return Ok(vec![(address, port).into()]);
        }
        let begin = self.clock.now();
        let found: Vec<SocketAddr> = tokio::net::lookup_host((self.target.host.as_str(), port)).await?.collect();
        opening.dns = Some(self.clock.now() - begin);
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(found)
    }
}

impl Connection {
    /// Lets the connection work. False once it has ended.
    pub fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        // A driver that has finished must not be polled again.
        if let Some(driver) = self.driver.as_mut()
            && Pin::new(driver).poll(cx).is_ready()
        {
            self.driver = None;
        }
        self.driver.is_some()
    }

    /// Whether another request can be sent on it now.
    pub fn is_reusable(&mut self, cx: &mut Context<'_>) -> bool {
        self.stamps.doubt();
        self.drive(cx) && matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())))
    }

    /// Begins a request; the next write is stamped as its send. The future makes progress only while `drive` is called.
    pub fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> impl Future<Output = hyper::Result<http::Response<hyper::body::Incoming>>> + use<> {
        self.stamps.arm();
        self.sender.send_request(request)
    }
}
