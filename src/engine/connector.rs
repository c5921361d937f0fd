//! Opens connections and measures how long each step takes.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::clock::Clock;
use super::connection::Connection;
use super::io::{Stamped, Stamps};
use super::socket::Socket;
use super::target::Target;
use crate::network::{Dialed, dial};
use crate::tls;
use crate::units::Nanos;

/// The duration of each step of opening a connection, in nanoseconds; `None` for a step that was not
/// needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// Duration of the name lookup.
    pub(crate) dns: Option<u64>,
    /// Duration of the TCP handshake, and of the tunnel through a proxy if there is one.
    pub connect: Option<u64>,
    /// Duration of the TLS handshake.
    pub(crate) tls: Option<u64>,
}

/// Opens connections to one target.
#[derive(Clone)]
pub(crate) struct Connector {
    target: Arc<Target>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    clock: Clock,
    /// Whether HTTP/2 is used.
    http2: bool,
}

impl Connector {
    /// Creates a connector to `target`. Fails if the host is not a valid name for TLS or the system's
    /// certificates cannot be read.
    pub(crate) fn new(target: Arc<Target>, clock: Clock, http2: bool) -> io::Result<Connector> {
        let route = &target.route;
        let tls = match route.address().is_https() {
            true => Some((tls::connector(route.tls(), http2)?, route.server_name()?)),
            false => None,
        };
        Ok(Connector { target, tls, clock, http2 })
    }

    /// Makes new stamps use the run's clock, which has started.
    pub(crate) fn begin(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Returns the clock that stamps this connector's connections.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the target's host and port, as sent in the `Host` header.
    pub(crate) fn authority(&self) -> &str {
        self.target.authority()
    }

    /// Opens a connection. This has no time limit; the caller must set one.
    pub(crate) async fn open(&self) -> io::Result<(Connection, Opening)> {
        let (socket, stamps, opening) = self.socket().await?;
        Ok((Connection::new(socket, stamps), opening))
    }

    /// Opens a socket, with TLS if the target uses it. Nothing is sent over HTTP yet.
    pub(crate) async fn socket(&self) -> io::Result<(Socket, Rc<Stamps>, Opening)> {
        let Dialed { stream, dns, connect } = dial(&self.target.route, self.http2).await?;
        let mut opening = Opening { dns: dns.map(nanos), connect: Some(nanos(connect)), tls: None };
        let stamps = Stamps::new(self.clock);
        let socket = Stamped::new(stream, Rc::clone(&stamps));
        let socket = match &self.tls {
            None => Socket::Plain(socket),
            Some((connector, name)) => {
                let begin = self.clock.now();
                let stream = connector.connect(name.clone(), socket).await?;
                opening.tls = Some(self.clock.now() - begin);
                if self.http2 && stream.get_ref().1.alpn_protocol() != Some(tls::HTTP2) {
                    return Err(io::Error::other("the server did not accept HTTP/2 (ALPN)"));
                }
                Socket::Tls(Box::new(stream))
            }
        };
        Ok((socket, stamps, opening))
    }
}

fn nanos(duration: Duration) -> u64 {
    Nanos::from(duration).0
}
