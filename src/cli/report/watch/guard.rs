//! Access control: only GET and HEAD requests are accepted, and they must name this machine and contain the
//! token from the printed address.

use hyper::header::HOST;
use hyper::{HeaderMap, Method, StatusCode};
use subtle::ConstantTimeEq;

/// The response to an admitted request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The page.
    Page,
    /// The live state.
    Live,
}

/// The values against which requests are checked.
pub(super) struct Guard {
    token: String,
    port: u16,
}

impl Guard {
    /// Creates the guard for a server on this port, whose address has this token.
    pub(super) fn new(token: String, port: u16) -> Guard {
        Guard { token, port }
    }

    /// Returns the response to the request, or the status with which the request is rejected. The host name
    /// is checked first, so that a page of another site whose name resolves to this machine (DNS rebinding)
    /// learns nothing, not even whether a token is right.
    pub(super) fn admit(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<Wanted, StatusCode> {
        let mut hosts = headers.get_all(HOST).iter();
        let is_ours = hosts.next().and_then(|host| host.to_str().ok()).is_some_and(|host| self.is_this_machine(host));
        if !is_ours || hosts.next().is_some() {
            return Err(StatusCode::FORBIDDEN);
        }
        if method != Method::GET && method != Method::HEAD {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        let (token, rest) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
        if !bool::from(token.as_bytes().ct_eq(self.token.as_bytes())) {
            return Err(StatusCode::FORBIDDEN);
        }
        match rest {
            "" if path.ends_with('/') => Ok(Wanted::Page),
            "live" => Ok(Wanted::Live),
            _ => Err(StatusCode::NOT_FOUND),
        }
    }

    fn is_this_machine(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        let is_name = ["127.0.0.1", "localhost", "[::1]"].iter().any(|known| name.eq_ignore_ascii_case(known));
        is_name && port.parse() == Ok(self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(method: Method, path: &str, hosts: &[&str]) -> Result<Wanted, u16> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().expect("a header"));
        }
        let guard = Guard::new("abc123".to_owned(), 4321);
        guard.admit(&method, path, &headers).map_err(|status| status.as_u16())
    }

    #[test]
    fn only_who_knows_the_address_looks_and_nobody_changes_anything() {
        let here = ["127.0.0.1:4321"];
        assert_eq!(admit(Method::GET, "/abc123/", &here), Ok(Wanted::Page));
        assert_eq!(admit(Method::HEAD, "/abc123/live", &["localhost:4321"]), Ok(Wanted::Live));
        for path in ["/", "/abc12/", "/abc1234/", "/ABC123/", "//", "/live", "/x/abc123/"] {
            assert_eq!(admit(Method::GET, path, &here), Err(403), "{path}");
        }
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE, Method::CONNECT] {
            assert_eq!(admit(method, "/abc123/", &here), Err(405));
        }
        for hosts in [
            &[][..],
            &["evil.example:4321"],
            &["127.0.0.1"],
            &["127.0.0.1:80"],
            &["127.0.0.1.evil:4321"],
            &["127.0.0.1:4321", "x:1"],
        ] {
            assert_eq!(admit(Method::GET, "/abc123/", hosts), Err(403), "{hosts:?}");
        }
        assert_eq!(admit(Method::GET, "/abc123/other", &here), Err(404));
        assert_eq!(admit(Method::GET, "/abc123", &here), Err(404));
    }
}
