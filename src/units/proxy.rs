//! An HTTP proxy that the plan names for an endpoint. The proxies of the environment (`HTTP_PROXY`, …) are
//! ignored, because they would change a measurement without a trace in the plan.

use std::fmt;

use url::Url;

use super::address::AddressError;

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Scheme, host and port, for messages.
    shown: String,
    /// The value of `Proxy-Authorization`; `None` without credentials.
    authorization: Option<String>,
    /// The credentials in all forms in which they might appear in a text.
    secrets: Vec<String>,
}

impl Proxy {
    /// Parses the address of a proxy, which may contain credentials: `http://user:password@host:port`.
    ///
    /// # Errors
    ///
    /// Fails if the text is not the address of an HTTP proxy. The error does not repeat the text, which may
    /// contain a password.
    pub fn parse(text: &str) -> Result<Proxy, AddressError> {
        let wrong = |message: String| AddressError {
            message,
            remedy: "write the address of an HTTP proxy, like http://proxy.example:3128".to_owned(),
        };
        let url = Url::parse(text).map_err(|error| wrong(format!("the address of the proxy is not a URL: {error}")))?;
        if url.scheme() != "http" {
            return Err(wrong(format!("the scheme of the proxy is `{}`, but only http is supported", url.scheme())));
        }
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("the address of the proxy has a path, a query or a fragment".to_owned()));
        }
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(80);
        let (authorization, secrets) = match (url.username(), url.password()) {
            ("", None) => (None, Vec::new()),
            (user, password) => {
                let password = unescaped(password.unwrap_or_default());
                let encoded = base64(format!("{}:{password}", unescaped(user)).as_bytes());
                let authorization = format!("Basic {encoded}");
                let written = url.password().unwrap_or_default().to_owned();
                let secrets = [authorization.clone(), encoded, password, written];
                (Some(authorization), secrets.into_iter().filter(|secret| !secret.is_empty()).collect())
            }
        };
        Ok(Proxy {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            shown: format!("http://{host}:{port}"),
            authorization,
            secrets,
        })
    }

    /// Returns the value of `Proxy-Authorization`; `None` without credentials. Call this only where it is
    /// sent.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// Returns the credentials in all forms in which they might appear in a text.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(String::as_str)
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.shown)
    }
}

/// Decodes the percent escapes of a user name or password.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Encodes bytes in base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            let is_filled = digit <= three.len();
            out.push(if is_filled { char::from(DIGITS[index]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_become_a_header_and_are_not_shown() {
        let proxy = Proxy::parse("http://me:p%40ss@proxy.example:3128").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example", 3128));
        assert_eq!(proxy.authorization(), Some("Basic bWU6cEBzcw=="));
        assert_eq!(format!("{proxy} {proxy:?}"), "http://proxy.example:3128 Proxy(http://proxy.example:3128)");
        assert!(proxy.secrets().any(|secret| secret == "p@ss"));
        let plain = Proxy::parse("http://[::1]").unwrap();
        assert_eq!((plain.host.as_str(), plain.port, plain.authorization()), ("::1", 80, None));
    }

    #[test]
    fn other_proxies_are_refused() {
        for text in ["socks5://h:1", "https://h:1", "h:3128", "http://h:1/path", "http://"] {
            let error = Proxy::parse(text).unwrap_err();
            assert!(error.to_string().contains("http://proxy.example:3128"), "{text}: {error}");
        }
    }

    #[test]
    fn base64_of_all_lengths() {
        let encoded = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
