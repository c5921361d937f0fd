//! The state of a sweep's servers: their addresses, their secrets, which are read when they are needed, and
//! the processes of servers that sweepline started. These processes run as long as the state is kept.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use tokio::sync::watch;

use crate::engine::{Secret, Target};
use crate::network::Route;
use crate::plan::{Access, Endpoint, SecretRef, TextOrSecret, Tls};
use crate::rows::ServerStart;
use crate::server::{Embedded, Found};
use crate::tls::TlsSettings;
use crate::units::{Address, Proxy};

use super::launching::Started;
use super::secrets::{ResolveError, Use, resolve_secret, resolve_until};
use super::tokens::TOKENS;

/// The state of an endpoint's server.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// The address of the endpoint; `None` until it is known.
    pub target: Option<Target>,
    /// The embedded server of the endpoint; `None` if it has none.
    pub embedded: Option<Embedded>,
    /// The server that was launched for the endpoint; `None` if there is none.
    pub launched: Option<Started>,
    /// The record of the launched server's start; `None` until the server is ready.
    pub start: Option<ServerStart>,
    /// The results of the probe.
    pub found: Found,
    /// When the server was last probed; `None` if it has not been probed.
    pub asked: Option<Instant>,
}

/// Returns the target of an endpoint at `url`, with the API key and the secret values of headers filled in.
/// `folder` is the plan's folder.
pub fn target<'a>(
    endpoint: &Endpoint,
    url: &str,
    of_headers: impl IntoIterator<Item = &'a SecretRef>,
    folder: &Path,
) -> Result<Target, ResolveError> {
    let mut target = Target::new(route(url, &endpoint.access(), folder)?);
    target.of_endpoint.lay(&endpoint.headers);
    with_secrets(target, endpoint.api_key.as_ref(), of_headers, folder)
}

/// Returns the way to the server at `url`. Paths of files are relative to `folder`.
pub(super) fn route(url: &str, access: &Access, folder: &Path) -> Result<Route, ResolveError> {
    let Access { host, socket, proxy, tls, insecure_tls } = access;
    let mut route = Route::direct(Address::parse(url)?);
    if let Some(host) = host {
        route = route.with_host(host)?;
    }
    if let Some(socket) = socket {
        route = route.on_socket(&folder.join(socket));
    }
    if let Some(proxy) = proxy {
        let address = match proxy {
            TextOrSecret::Text(text) => text.clone(),
            TextOrSecret::Secret(reference) => resolve_secret(Use::Proxy, reference, folder)?.reveal().to_owned(),
        };
        route = route.through(Proxy::parse(&address)?);
    }
    if !route.address().is_https() {
        return Ok(route);
    }
    let Tls { ca, cert, key } = tls.clone().unwrap_or_default();
    let [ca, cert, key] = [ca, cert, key].map(|file| file.map(|file| folder.join(file)));
    let identity = cert.as_deref().zip(key.as_deref());
    Ok(route.with_tls(TlsSettings::read(*insecure_tls, ca.as_deref(), identity)?))
}

/// Fills in the API key and the secret values of headers in a target.
pub(super) fn with_secrets<'a>(
    mut target: Target,
    api_key: Option<&SecretRef>,
    of_headers: impl IntoIterator<Item = &'a SecretRef>,
    folder: &Path,
) -> Result<Target, ResolveError> {
    let mut wrong = Vec::new();
    if let Some(reference) = api_key {
        match resolve_secret(Use::Key, reference, folder) {
            Ok(key) => target.api_key = Some(key),
            Err(error) => wrong.push(error),
        }
    }
    let references: BTreeSet<SecretRef> =
        of_headers.into_iter().cloned().chain(target.of_endpoint.secrets().cloned()).collect();
    for reference in references {
        match resolve_secret(Use::Header, &reference, folder) {
            Ok(secret) => drop(target.secrets.insert(reference, secret)),
            Err(error) => wrong.push(error),
        }
    }
    target.expires = api_key.into_iter().chain(target.secrets.keys()).any(|reference| reference.command().is_some());
    target.earlier = TOKENS.known();
    match wrong.len() {
        0 => Ok(target),
        1 => Err(wrong.remove(0)),
        _ => Err(ResolveError::Several(wrong)),
    }
}

/// Reads again the secrets of a target that may have changed since it was made: tokens that are no longer valid or
/// were rejected, and files. Fails if a command prints no token, or `stop` becomes true meanwhile.
pub(super) fn renewed(
    mut target: Target,
    api_key: Option<&SecretRef>,
    folder: &Path,
    stop: &watch::Receiver<bool>,
) -> Result<Target, ResolveError> {
    if let Some((reference, key)) = api_key.zip(target.api_key.as_mut()) {
        renew(Use::Key, reference, key, folder, stop)?;
    }
    for (reference, secret) in &mut target.secrets {
        renew(Use::Header, reference, secret, folder, stop)?;
    }
    target.earlier = TOKENS.known();
    Ok(target)
}

/// Reads a secret again if it may have changed.
fn renew(
    used: Use,
    reference: &SecretRef,
    secret: &mut Secret,
    folder: &Path,
    stop: &watch::Receiver<bool>,
) -> Result<(), ResolveError> {
    let now = match reference {
        SecretRef::Env(_) => return Ok(()),
        // A mounted file may be missing while it is replaced.
        SecretRef::File(path) if !folder.join(path).is_file() => return Ok(()),
        SecretRef::File(_) => resolve_secret(used, reference, folder).unwrap_or_else(|_| secret.clone()),
        SecretRef::Command(_) => resolve_until(used, reference, folder, stop)?,
    };
    if now != *secret {
        TOKENS.remember(secret);
        TOKENS.remember(&now);
        *secret = now;
    }
    Ok(())
}

/// Returns the address for display, with the API key redacted. No command is executed to get the key.
pub(super) fn shown(endpoint: &Endpoint, url: &str, folder: &Path) -> String {
    let key = endpoint.api_key.as_ref().filter(|key| key.command().is_none());
    let key = key.and_then(|key| resolve_secret(Use::Key, key, folder).ok());
    key.map_or_else(|| url.to_owned(), |key| key.redact(url))
}
