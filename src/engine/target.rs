//! The destination of measured requests: address, path and secrets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::network::Route;
use crate::plan::{Headers, SecretRef, TextOrSecret};
use crate::units::{Address, AddressError, SecretMask};

/// What replaces a secret in a text.
const HIDDEN: &str = "[secret]";

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
        SecretMask::new([self.reveal()], HIDDEN).hide(text)
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
    /// The way to the server.
    pub route: Route,
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
    /// Becomes false when the server process that sweepline started has ended; `None` if sweepline did not
    /// start the server.
    pub alive: Option<Arc<AtomicBool>>,
}

impl Target {
    /// Creates a target without a key.
    pub fn new(route: Route) -> Target {
        Target {
            route,
            api_key: None,
            of_endpoint: Headers::default(),
            secrets: BTreeMap::new(),
            expires: false,
            earlier: Vec::new(),
            alive: None,
        }
    }

    /// Creates a target without a key that is reached directly at the address `url`.
    ///
    /// # Errors
    ///
    /// Fails if `url` is not the base address of an API.
    pub fn parse(url: &str) -> Result<Target, AddressError> {
        Ok(Target::new(Route::direct(Address::parse(url)?)))
    }

    /// Returns the value of the `Host` header.
    pub fn authority(&self) -> &str {
        self.route.authority()
    }

    /// Returns the name and value of each header, with secrets revealed. Call this only where the headers
    /// are sent. A header whose secret is unknown is omitted.
    pub fn headers<'a>(&'a self, headers: &'a Headers) -> impl Iterator<Item = (&'a str, &'a str)> {
        headers.iter().filter_map(|(name, value)| match value {
            TextOrSecret::Text(text) => Some((name, text.as_str())),
            TextOrSecret::Secret(reference) => Some((name, self.secrets.get(reference)?.reveal())),
        })
    }

    /// Returns the mask that replaces all secrets of this target.
    pub(crate) fn mask(&self) -> SecretMask {
        let secrets = self.api_key.iter().chain(self.secrets.values()).chain(&self.earlier).map(Secret::reveal);
        SecretMask::new(secrets.chain(self.route.secrets()), HIDDEN)
    }

    /// Returns `text` with all secrets of this target replaced.
    pub fn redact(&self, text: &str) -> String {
        self.mask().hide(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("canary".into());
        assert_eq!(format!("{secret:?}"), "[secret]");
        assert_eq!(secret.redact("bad key canary!"), "bad key [secret]!");
        let odd = Secret::new(r#"a"b\c"#.into());
        assert_eq!(odd.redact(r#"a"b\c and {"key":"a\"b\\c"}"#), r#"[secret] and {"key":"[secret]"}"#);
    }
}
