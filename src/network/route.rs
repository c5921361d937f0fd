//! The way to a server, as the plan describes it.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;

use crate::tls::TlsSettings;
use crate::units::{Address, AddressError, Proxy, host_in};

/// The way to a server.
#[derive(Debug, Clone)]
pub struct Route {
    address: Address,
    /// The name that the client asks for, and the value of the `Host` header; `None` for those of the
    /// address.
    host: Option<Named>,
    /// The Unix socket on which the server listens; `None` if the address names the server.
    socket: Option<Arc<Path>>,
    proxy: Option<Arc<Proxy>>,
    tls: TlsSettings,
}

/// A host that replaces that of the address.
#[derive(Debug, Clone)]
struct Named {
    /// The value of the `Host` header, as the plan contains it.
    authority: String,
    /// The host without a port.
    name: String,
}

impl Route {
    /// Creates the way that leads directly to an address.
    pub fn direct(address: Address) -> Route {
        Route { address, host: None, socket: None, proxy: None, tls: TlsSettings::default() }
    }

    /// Asks for `host` instead of the host of the address. A port in `host` is sent in the `Host` header, but
    /// has no other effect.
    ///
    /// # Errors
    ///
    /// Fails if `host` is neither a host name nor a host name with a port.
    pub fn with_host(self, host: &str) -> Result<Route, AddressError> {
        let name = host_in(host)?;
        Ok(Route { host: Some(Named { authority: host.to_owned(), name }), ..self })
    }

    /// Connects to a Unix socket instead of to the address.
    pub fn on_socket(self, path: &Path) -> Route {
        Route { socket: Some(path.into()), ..self }
    }

    /// Connects through a proxy.
    pub fn through(self, proxy: Proxy) -> Route {
        Route { proxy: Some(Arc::new(proxy)), ..self }
    }

    /// Uses these settings of TLS.
    pub fn with_tls(self, tls: TlsSettings) -> Route {
        Route { tls, ..self }
    }

    /// Leads to another base address on the same server.
    pub fn at(&self, address: Address) -> Route {
        Route { address, ..self.clone() }
    }

    /// Returns the base address of the API.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the value of the `Host` header.
    pub fn authority(&self) -> &str {
        self.host.as_ref().map_or(self.address.authority(), |host| &host.authority)
    }

    /// Returns the Unix socket on which the server listens; `None` if the address names the server.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Returns the proxy; `None` if connections are direct.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_deref()
    }

    /// Returns the settings of TLS.
    pub fn tls(&self) -> &TlsSettings {
        &self.tls
    }

    /// Returns the name that the server's certificate must have, which is also sent to the server (SNI).
    ///
    /// # Errors
    ///
    /// Fails if no certificate can have this name.
    pub fn server_name(&self) -> io::Result<ServerName<'static>> {
        let name = self.host.as_ref().map_or(self.address.host(), |host| &host.name);
        ServerName::try_from(name.to_owned()).map_err(io::Error::other)
    }

    /// Returns the host and port of a connection over TCP.
    pub fn tcp(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (self.address.host(), self.address.port()),
        }
    }

    /// Returns the proxy that forwards each request, and therefore gets its whole URL. A proxy forwards
    /// requests over HTTP/1.1 without TLS; for all others it opens a tunnel.
    pub fn forwarding_proxy(&self, http2: bool) -> Option<&Proxy> {
        self.proxy().filter(|_| !http2 && !self.address.is_https())
    }

    /// Returns the request target of an HTTP/1.1 request: the path and query, or the whole URL if a proxy
    /// forwards the request.
    pub fn request_target(&self, path: &str) -> String {
        match self.forwarding_proxy(false) {
            Some(_) => format!("{}{path}", self.address.origin()),
            None => path.to_owned(),
        }
    }

    /// Returns the URI of an HTTP/2 request, whose authority replaces the `Host` header.
    pub fn http2_uri(&self, path: &str) -> String {
        let scheme = if self.address.is_https() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.authority())
    }

    /// Returns the proxy's credentials in all forms in which they might appear in a text.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.proxy.iter().flat_map(|proxy| proxy.secrets())
    }
}

impl fmt::Display for Route {
    /// Writes the base address, and what lies before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        if let Some(socket) = &self.socket {
            write!(f, " (socket {})", socket.display())?;
        }
        match &self.proxy {
            Some(proxy) => write!(f, " (through the proxy {proxy})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(url: &str) -> Route {
        Route::direct(Address::parse(url).unwrap())
    }

    #[test]
    fn a_host_replaces_that_of_the_address() {
        let gateway = route("https://10.0.0.7:8443/v1").with_host("gw.example").unwrap();
        assert_eq!((gateway.authority(), gateway.tcp()), ("gw.example", ("10.0.0.7", 8443)));
        assert_eq!(gateway.http2_uri("/v1/models"), "https://gw.example/v1/models");
        assert_eq!(gateway.server_name().unwrap(), ServerName::try_from("gw.example").unwrap());
        let with_port = route("https://10.0.0.7/v1").with_host("gw.example:8443").unwrap();
        assert_eq!(with_port.authority(), "gw.example:8443");
        assert_eq!(with_port.server_name().unwrap(), ServerName::try_from("gw.example").unwrap());
    }

    #[test]
    fn a_proxy_forwards_plain_requests_and_tunnels_the_others() {
        let proxy = || Proxy::parse("http://p:3128").unwrap();
        let plain = route("http://h:8000/v1").through(proxy());
        assert_eq!(plain.request_target("/v1/models"), "http://h:8000/v1/models");
        assert_eq!((plain.tcp(), plain.forwarding_proxy(true)), (("p", 3128), None));
        let secure = route("https://h/v1").through(proxy());
        assert_eq!(secure.request_target("/v1/models"), "/v1/models");
        assert_eq!(secure.to_string(), "https://h/v1 (through the proxy http://p:3128)");
    }
}
