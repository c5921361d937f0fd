//! The base address of an API. The addresses of all requests to a server are made here, so that the check,
//! the probe and measured requests cannot differ.

use std::fmt;

use url::{Host, Url};

/// An example of an address, for remedies.
const LIKE: &str = "write it like http://127.0.0.1:8000/v1";
/// Maximum length of a host name (RFC 1035, 2.3.4, without the root's label), in bytes.
const LONGEST_NAME: usize = 253;
/// Maximum length of one label of a host name, in bytes.
const LONGEST_LABEL: usize = 63;

/// The base address of an API: scheme, host and port, the path before the API's own paths, and a query that
/// every request to the API carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    url: Url,
    /// Host, and port unless it is the scheme's default port.
    authority: String,
}

/// Why a text is not the base address of an API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {remedy}")]
pub struct AddressError {
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub remedy: String,
}

impl AddressError {
    fn new(message: impl Into<String>, remedy: impl Into<String>) -> AddressError {
        AddressError { message: message.into(), remedy: remedy.into() }
    }
}

impl Address {
    /// Parses the base address of an API.
    ///
    /// # Errors
    ///
    /// Fails if the text is not an http or https URL, if its host cannot exist, or if it has a part that no
    /// request can carry.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        check_text(text)?;
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(error) => return Err(AddressError::new(format!("`{text}` is not a URL: {error}"), LIKE)),
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::new(format!("`{text}` is neither an http nor an https URL"), LIKE));
        }
        check_host(text, &url)?;
        if let Some(fragment) = url.fragment() {
            let base = text.strip_suffix(fragment).unwrap_or(text);
            let message = format!("`{base}…` has a fragment, which is never sent to a server");
            return Err(AddressError::new(message, "remove it, or write %23 if `#` is part of the path or query"));
        }
        check_escapes(text)?;
        Ok(Address::new(url))
    }

    /// Creates an address from a URL that has a host.
    fn new(url: Url) -> Address {
        let host = url.host_str().unwrap_or_default();
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Address { url, authority }
    }

    /// Returns the address as a URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether the scheme is https.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the host name or the IP address, without brackets.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// Returns the TCP port.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// Returns the host, with the port unless it is the scheme's default port: the value of a `Host` header.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns scheme and authority: the part of a URL before its path.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.url.scheme(), self.authority)
    }

    /// Returns path and query of a call of the API, such as `/chat/completions`, below the base address.
    pub fn of_api(&self, call: &str) -> String {
        format!("{}{call}{}", self.base(), self.query())
    }

    /// Returns path and query of a page that servers have next to their API, such as `/metrics`: below the
    /// base address without `/v1`, without the query of the API.
    pub fn beside_api(&self, page: &str) -> String {
        let base = self.base();
        format!("{}{page}", base.strip_suffix("/v1").unwrap_or(base))
    }

    /// Returns path and query of a page that the plan names by its path from the server's root. The path may
    /// have a query.
    pub fn from_root(&self, page: &str) -> String {
        let (path, query) = match page.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (page, None),
        };
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(query);
        match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        }
    }

    /// Returns the other base address at which the API might be: with `/v1` if the address has none, and
    /// without it otherwise.
    pub fn with_or_without_v1(&self) -> Address {
        let base = self.base();
        let other = match base.strip_suffix("/v1") {
            Some(root) => root.to_owned(),
            None => format!("{base}/v1"),
        };
        let mut url = self.url.clone();
        url.set_path(&other);
        Address::new(url)
    }

    /// Returns the base address if `url` is the address of a call of an API, such as `/chat/completions`;
    /// `None` if it is not.
    pub fn of_call(url: &Url, call: &str) -> Option<Address> {
        let base = url.path().trim_end_matches('/').strip_suffix(call)?.to_owned();
        let mut url = url.clone();
        url.set_path(&base);
        url.set_fragment(None);
        Some(Address::new(url))
    }

    /// The path before the calls of the API, without a trailing slash.
    fn base(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }

    /// The query with its question mark; empty without a query.
    fn query(&self) -> String {
        match self.url.query() {
            None | Some("") => String::new(),
            Some(query) => format!("?{query}"),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.origin(), self.base(), self.query())
    }
}

/// Returns the host name in `text`, which may have a port after it: `gateway.example:8443`.
///
/// # Errors
///
/// Fails if the text is neither a host name nor a host name with a port.
pub fn host_in(text: &str) -> Result<String, AddressError> {
    let wrong = |message: String| AddressError::new(message, "write a host name, like gateway.example, or a name:port");
    if text.contains("://") {
        let message = format!("`{text}` is an address, not the name of a host");
        return Err(AddressError::new(message, "write it as `url`, and only the name as `host`"));
    }
    if text.is_empty() || text.contains(['/', '?', '#', '@', '\\', '%', '$']) {
        return Err(wrong(format!("`{text}` is not the name of a host")));
    }
    match Address::parse(&format!("http://{text}")) {
        Ok(address) => Ok(address.host().to_owned()),
        Err(error) => Err(wrong(error.message)),
    }
}

/// Checks the text for mistakes that a parser would not explain, or would silently repair.
fn check_text(text: &str) -> Result<(), AddressError> {
    if text.trim().is_empty() {
        return Err(AddressError::new("`url` is empty", LIKE));
    }
    if text.contains('$') {
        let message = format!("`{text}` contains a shell variable, which a plan does not expand");
        return Err(AddressError::new(message, "write the address itself, like http://127.0.0.1:8000/v1"));
    }
    if text.starts_with(['“', '”', '‘', '’', '«', '„']) {
        let message = format!("the typographic quotes in `{text}` are read as part of the address");
        return Err(AddressError::new(message, "write straight quotes: \"http://127.0.0.1:8000/v1\""));
    }
    // `localhost:8000` parses as the scheme `localhost`.
    if !text.contains(":/")
        && let Ok(whole) = Url::parse(&format!("http://{text}"))
    {
        let path = if matches!(whole.path(), "" | "/") { "/v1" } else { "" };
        let message = format!("`{text}` does not begin with http:// or https://");
        return Err(AddressError::new(message, format!("write http://{}{path}", text.trim_end_matches('/'))));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let message = format!("`{text}` contains a space or a control character");
        return Err(AddressError::new(message, "remove it, or write %20 for a space in the path or query"));
    }
    let scheme = text.split(':').next().unwrap_or_default();
    let rest = text[scheme.len()..].trim_start_matches(':');
    if scheme.to_ascii_lowercase().starts_with("http") && !rest.starts_with("//") {
        let message = format!("`{text}` does not have two slashes after `{scheme}:`");
        return Err(AddressError::new(message, format!("write {scheme}://{}", rest.trim_start_matches('/'))));
    }
    Ok(())
}

/// Checks that the host can exist. A URL parser accepts names that no resolver can look up, and completes IP
/// addresses: it reads `10.0.1` as 10.0.0.1.
fn check_host(text: &str, url: &Url) -> Result<(), AddressError> {
    let name = match url.host() {
        Some(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(name),
        Some(Host::Ipv4(address)) if written_host(text) != address.to_string() => {
            let message = format!("the host `{}` is not a complete IP address", written_host(text));
            return Err(AddressError::new(message, "write the four numbers of the address, or a host name"));
        }
        Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => return Ok(()),
    };
    let correct = "correct the name of the host";
    let is_of_names = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(other) = name.chars().find(|c| !is_of_names(*c)) {
        return Err(AddressError::new(format!("no host name contains `{other}`, as `{name}` does"), correct));
    }
    if name.split('.').any(str::is_empty) {
        let message = format!("the host `{name}` cannot exist: there is nothing before or between its dots");
        return Err(AddressError::new(message, correct));
    }
    if name.len() > LONGEST_NAME {
        let message = format!("the host has {} characters, but a name has at most {LONGEST_NAME}", name.len());
        return Err(AddressError::new(message, correct));
    }
    if let Some(label) = name.split('.').find(|label| label.len() > LONGEST_LABEL) {
        let message = format!(
            "the part `{label}` of the host has {} characters, but a part of a name has at most {LONGEST_LABEL}",
            label.len()
        );
        return Err(AddressError::new(message, correct));
    }
    Ok(())
}

/// The host as it is written in the text of a URL.
fn written_host(text: &str) -> &str {
    let after_scheme = text.split_once("//").map_or(text, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

/// Checks that every `%` begins an escape of two hexadecimal digits.
fn check_escapes(text: &str) -> Result<(), AddressError> {
    for (at, _) in text.match_indices('%') {
        let digits = text.as_bytes().get(at + 1..at + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            let wrong: String = text[at..].chars().take(3).collect();
            let message = format!("`{wrong}` in `{text}` is not an escape of a character");
            return Err(AddressError::new(message, "write two hexadecimal digits after %, or %25 for the sign itself"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn every_call_of_the_api_is_below_the_base_and_carries_the_query() {
        let call = |base: &str| address(base).of_api("/chat/completions");
        assert_eq!(call("http://h"), "/chat/completions");
        assert_eq!(call("http://h/v1/"), "/v1/chat/completions");
        assert_eq!(call("http://h/base/v1?deployment=blue"), "/base/v1/chat/completions?deployment=blue");
        assert_eq!(call("http://h/base/v1/?deployment=blue"), "/base/v1/chat/completions?deployment=blue");
        assert_eq!(call("http://h/v1?"), "/v1/chat/completions");
        let azure = address("https://a.example/openai/deployments/gpt?api-version=2024-10-21");
        assert_eq!(azure.of_api("/models"), "/openai/deployments/gpt/models?api-version=2024-10-21");
    }

    #[test]
    fn pages_of_the_server_stay_at_its_root() {
        let gateway = address("https://h:8443/base/v1?deployment=blue");
        assert_eq!(gateway.beside_api("/metrics"), "/base/metrics");
        assert_eq!(gateway.from_root("/health?full=1"), "/health?full=1");
        assert_eq!(gateway.from_root("/health"), "/health");
        assert_eq!(gateway.to_string(), "https://h:8443/base/v1?deployment=blue");
        assert_eq!(gateway.with_or_without_v1().to_string(), "https://h:8443/base?deployment=blue");
        assert_eq!(address("http://h").with_or_without_v1().to_string(), "http://h/v1");
    }

    #[test]
    fn host_and_port_are_those_of_the_url() {
        let parts = |text: &str| {
            let address = address(text);
            (address.host().to_owned(), address.port(), address.authority().to_owned())
        };
        assert_eq!(parts("http://127.0.0.1:8000/v1"), ("127.0.0.1".into(), 8000, "127.0.0.1:8000".into()));
        assert_eq!(parts("https://[::1]/v1"), ("::1".into(), 443, "[::1]".into()));
        assert_eq!(parts("http://GPU_1.example.:80/v1"), ("gpu_1.example.".into(), 80, "gpu_1.example.".into()));
    }

    #[test]
    fn a_host_is_a_name_with_or_without_a_port() {
        assert_eq!(host_in("gw.example"), Ok("gw.example".to_owned()));
        assert_eq!(host_in("gw.example:8443"), Ok("gw.example".to_owned()));
        for wrong in ["", "https://gw.example", "gw..example", "gw example", "me@gw.example", "gw.example/v1"] {
            assert!(host_in(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_remedy() {
        let long = format!("http://{}/v1", ["a".repeat(60).as_str(); 5].join("."));
        let label = format!("http://{}.example/v1", "a".repeat(64));
        for (text, part) in [
            ("http://h/v1#top", "`http://h/v1#…` has a fragment"),
            ("http://a..b/v1", "nothing before or between its dots"),
            ("http://.b/v1", "nothing before or between its dots"),
            ("http://a b/v1", "a space or a control character"),
            ("http://a\u{1}b/v1", "a space or a control character"),
            ("http://a*b/v1", "contains `*`"),
            ("http://a%zzb/v1", "is not a URL"),
            ("http://h/%zz/v1", "`%zz` in"),
            ("http://h/v1?a=100%", "`%` in"),
            ("http://10.0.1/v1", "`10.0.1` is not a complete IP address"),
            ("http://256.0.0.1/v1", "is not a URL"),
            ("ftp://h/v1", "neither an http nor an https URL"),
            ("127.0.0.1:8000", "does not begin with http://"),
            (&long, "at most 253"),
            (&label, "at most 63"),
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(error.message.contains(part), "{text}: {error}");
        }
        for text in ["http://gpu_1/v1", "http://h./v1", "http://münchen.example/v1", "http://h/a%20b"] {
            address(text);
        }
    }
}
