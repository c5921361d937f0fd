//! The destination of measured requests: address, path and secrets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use http::Uri;
use http::uri::Scheme;

use crate::plan::{Headers, SecretRef, TextOrSecret};
use crate::units::secrecy::without_secrets;

/// A secret. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text` so that it cannot be printed.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// Returns the secret itself. Call this only where the secret is sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns `text` with the secret replaced, because servers tend to repeat a wrong key in their errors.
    pub fn redact(&self, text: &str) -> String {
        without_secrets(text, [self.reveal()], "[secret]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The server under test: everything that a client needs to send requests to it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Whether TLS is used.
    pub(crate) tls: bool,
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of the `Host` header.
    pub authority: String,
    /// Path of the API's base, without a trailing slash.
    pub base: String,
    /// The API key, which is sent in the header of the API; `None` without a key.
    pub api_key: Option<Secret>,
    /// The headers that the plan sets for the endpoint. Requests that are not measured carry only these
    /// headers.
    pub of_endpoint: Headers,
    /// The secret values of headers, keyed by the plan's references to them.
    pub secrets: BTreeMap<SecretRef, Secret>,
    /// Whether the API key or the value of a header is a token that expires.
    pub expires: bool,
    /// Values that secrets had earlier, which are not shown either.
    pub earlier: Vec<Secret>,
    /// Whether any certificate is accepted.
    pub insecure_tls: bool,
    /// Becomes false when the server process that sweepline started has ended; `None` if sweepline did not
    /// start the server.
    pub alive: Option<Arc<AtomicBool>>,
}

/// The error for an address that is not a valid target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` is not a valid address: {reason}; write it like http://127.0.0.1:8000/v1")]
pub struct TargetError {
    url: String,
    reason: String,
}

impl Target {
    /// Parses the address `url`. The target has no key yet.
    pub fn parse(url: &str) -> Result<Target, TargetError> {
        let wrong = |reason: &str| TargetError { url: url.to_owned(), reason: reason.to_owned() };
        let uri: Uri = url.parse().map_err(|e: http::uri::InvalidUri| wrong(&e.to_string()))?;
        let tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(wrong("it does not start with http:// or https://")),
        };
        let authority = uri.authority().filter(|a| !a.host().is_empty()).ok_or_else(|| wrong("it has no host"))?;
        let host = authority.host();
        Ok(Target {
            tls,
            host: host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host).to_owned(),
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            base: uri.path().trim_end_matches('/').to_owned(),
            api_key: None,
            of_endpoint: Headers::default(),
            secrets: BTreeMap::new(),
            expires: false,
            earlier: Vec::new(),
            insecure_tls: false,
            alive: None,
        })
    }

    /// Returns the address of the API's base, in a form that `parse` accepts.
    pub fn url(&self) -> String {
        format!("{}://{}{}", if self.tls { "https" } else { "http" }, self.authority, self.base)
    }

    /// Returns the name and value of each header, with secrets revealed. Call this only where the headers
    /// are sent. A header whose secret is unknown is omitted.
    pub fn headers<'a>(&'a self, headers: &'a Headers) -> impl Iterator<Item = (&'a str, &'a str)> {
        headers.iter().filter_map(|(name, value)| match value {
            TextOrSecret::Text(text) => Some((name, text.as_str())),
            TextOrSecret::Secret(reference) => Some((name, self.secrets.get(reference)?.reveal())),
        })
    }

    /// Whether the target has secrets to protect.
    pub(crate) fn has_secrets(&self) -> bool {
        self.api_key.is_some() || !self.secrets.is_empty()
    }

    /// Returns `text` with all secrets of this target replaced.
    pub fn redact(&self, text: &str) -> String {
        let secrets = self.api_key.iter().chain(self.secrets.values()).chain(&self.earlier);
        without_secrets(text, secrets.map(Secret::reveal), "[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let target = Target::parse("http://127.0.0.1:8000/v1/").unwrap();
        assert_eq!((target.tls, &*target.host, target.port, &*target.base), (false, "127.0.0.1", 8000, "/v1"));
        let target = Target::parse("https://[::1]/v1").unwrap();
        assert_eq!((target.tls, &*target.host, target.port, &*target.authority), (true, "::1", 443, "[::1]"));
        assert!(Target::parse("127.0.0.1:8000").is_err());
        assert!(Target::parse("ftp://x/").is_err());
    }

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("canary".into());
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert_eq!(secret.redact("bad key canary!"), "bad key [secret]!");
        let odd = Secret::new(r#"a"b\c"#.into());
        assert_eq!(odd.redact(r#"a"b\c and {"key":"a\"b\\c"}"#), r#"[secret] and {"key":"[secret]"}"#);
    }
}
