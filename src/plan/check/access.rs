//! Checks of the way to an endpoint's server: another host, a Unix socket, a proxy, and certificates.

use std::path::{Component, Path};

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::access::Tls;
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::plan::text::secret::mount_of;
use crate::plan::text::tree::Step;
use crate::units::{Address, AddressError, Proxy, host_in};

/// Maximum length of the path of a Unix socket (unix(7): 108 bytes with the final zero), in bytes.
const LONGEST_SOCKET: usize = 107;

impl Checker<'_> {
    /// Checks how an endpoint's server is reached.
    pub(super) fn access(&mut self, name: &str, endpoint: &Endpoint) {
        let is_https = endpoint.url.as_deref().and_then(|url| Address::parse(url).ok()).map(|url| url.is_https());
        if endpoint.is_embedded() {
            self.embedded_access(name, endpoint);
            return;
        }
        if let Some(host) = &endpoint.host {
            self.host(name, host);
        }
        if let Some(socket) = &endpoint.socket {
            self.socket(name, endpoint, socket);
        }
        if let Some(proxy) = &endpoint.proxy {
            self.proxy(name, endpoint, proxy, is_https);
        }
        if let Some(tls) = &endpoint.tls {
            self.tls(name, endpoint, tls, is_https);
        }
    }

    fn contradiction(&mut self, at: &[Step], message: impl Into<String>, remedy: &str) {
        self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
    }

    /// Reports settings of the way to a server that sweepline starts inside itself.
    fn embedded_access(&mut self, name: &str, endpoint: &Endpoint) {
        let keys = [
            ("host", endpoint.host.is_some()),
            ("socket", endpoint.socket.is_some()),
            ("proxy", endpoint.proxy.is_some()),
            ("tls", endpoint.tls.is_some()),
        ];
        for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
            let message =
                format!("`{key}` describes the way to a server, but sweepline starts the embedded server itself");
            let remedy = format!("remove `{key}`, or name the server with `url`");
            self.contradiction(&steps!["endpoints", name, key], message, &remedy);
        }
    }

    fn host(&mut self, name: &str, host: &str) {
        if let Err(AddressError { message, remedy }) = host_in(host) {
            let at = steps!["endpoints", name, "host"];
            self.report(&at, Diagnostic::new(Code::Url, message).remedy(remedy));
        }
    }

    fn socket(&mut self, name: &str, endpoint: &Endpoint, socket: &str) {
        let at = steps!["endpoints", name, "socket"];
        if socket.is_empty() {
            self.empty(&at, "`socket` is empty", "write the path of the server's Unix socket, like /run/vllm.sock");
        } else if socket.len() > LONGEST_SOCKET {
            let message =
                format!("`socket` has {} bytes, but a socket's path has at most {LONGEST_SOCKET}", socket.len());
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy("move the socket to a shorter path"));
        } else if endpoint.launch.is_some() {
            let message =
                "`socket` is the socket of a server that is already running, but `launch` starts one on a port";
            self.contradiction(&at, message, "remove `socket`, or start the server yourself and remove `launch`");
        } else if endpoint.url.is_none() {
            let message = "`socket` has no `url`, which states the scheme and the path of the API";
            self.contradiction(&at, message, "add url: http://localhost/v1");
        } else if endpoint.proxy.is_some() {
            let message = "`socket` is a socket on this machine, but `proxy` connects to another host";
            self.contradiction(&at, message, "remove `socket` or `proxy`");
        }
    }

    fn proxy(&mut self, name: &str, endpoint: &Endpoint, proxy: &TextOrSecret, is_https: Option<bool>) {
        let at = steps!["endpoints", name, "proxy"];
        match proxy {
            TextOrSecret::Secret(secret) => self.secret(&steps!["endpoints", name, "proxy", "secret"], secret),
            TextOrSecret::Text(text) => match Proxy::parse(text) {
                Ok(proxy) if proxy.authorization().is_some() => {
                    let message =
                        "the address of the proxy contains a password, which would end up in results and logs";
                    let remedy =
                        "put the whole address into an environment variable and write proxy: { secret: env:NAME }";
                    self.report(&at, Diagnostic::new(Code::Secret, message).remedy(remedy));
                }
                Ok(_) => {}
                Err(AddressError { message, remedy }) => {
                    self.report(&at, Diagnostic::new(Code::Url, message).remedy(remedy));
                }
            },
        }
        if endpoint.host.is_some() && is_https == Some(false) {
            let message = "a proxy sends the host of `url` to the server, so `host` has no effect without TLS";
            let at = steps!["endpoints", name, "host"];
            self.contradiction(&at, message, "write the name in `url`; the proxy looks it up");
        }
    }

    fn tls(&mut self, name: &str, endpoint: &Endpoint, tls: &Tls, is_https: Option<bool>) {
        let at = steps!["endpoints", name, "tls"];
        if is_https == Some(false) {
            let message = "`tls` names certificates, but `url` begins with http://";
            return self.contradiction(&at, message, "write https:// in `url`, or remove `tls`");
        }
        if tls.ca.is_some() && endpoint.insecure_tls {
            let message = "`insecure_tls` accepts any certificate, so `tls.ca` has no effect";
            self.contradiction(&[&at[..], &steps!["ca"]].concat(), message, "remove `insecure_tls`, or `ca`");
        }
        let pairs =
            [("certificate", &tls.certificate, "key", &tls.key), ("key", &tls.key, "certificate", &tls.certificate)];
        for (key, given, other, missing) in pairs {
            if given.is_some() && missing.is_none() {
                let message = format!("`tls.{key}` has no `{other}`");
                let remedy = format!("add `{other}`: a client's certificate and its private key belong together");
                self.contradiction(&[&at[..], &steps![key]].concat(), message, &remedy);
            }
        }
        for (key, file) in [("ca", &tls.ca), ("certificate", &tls.certificate), ("key", &tls.key)] {
            if let Some(file) = file {
                self.certificate_file(&[&at[..], &steps![key]].concat(), key, &file.0);
            }
        }
    }

    fn certificate_file(&mut self, at: &[Step], key: &str, file: &str) {
        if file.is_empty() {
            return self.empty(at, format!("`tls.{key}` is empty"), "write the path of a PEM file");
        }
        let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if self.allow_outside || mount_of(file).is_some() || Path::new(file).components().all(inside) {
            return;
        }
        let message = format!("`{file}` is outside the plan's folder");
        let remedy = "move the file to the plan's folder and list keys in .gitignore, or allow it with --allow-outside";
        self.report(at, Diagnostic::new(Code::PathOutside, message).remedy(remedy));
    }
}
