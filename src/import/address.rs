//! Parses addresses of servers in the forms that users write.

use reqwest::Url;

use crate::units;

/// An address without secrets.
pub(super) struct Address {
    /// The address, without a slash at its end.
    pub url: String,
    /// Whether the original address contained a user, a password or a query, which `url` omits.
    pub(crate) had_secret: bool,
    /// Whether `url` differs from the original address by more than a slash at the end.
    pub(crate) is_changed: bool,
}

/// Parses `http://host:port/path` or `host:port`; the error gives the reason without repeating the address.
pub(super) fn address(text: &str) -> Result<Address, String> {
    let text = text.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&whole).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("neither http nor https".to_owned());
    }
    // A base address does not need a query, and a query usually contains a key.
    let had_secret = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
    if had_secret {
        let _ = (url.set_username(""), url.set_password(None));
    }
    url.set_query(None);
    url.set_fragment(None);
    let url = url.as_str().trim_end_matches('/').to_owned();
    if units::Address::parse(&url).is_err() {
        return Err("its host name, or an escape in it, is not valid".to_owned());
    }
    let is_changed = url != text.trim_end_matches('/');
    Ok(Address { url, had_secret, is_changed })
}

/// Returns the base address of a server's API. If the address ends with the path of a call, such as
/// `/chat/completions`, this path is removed; if the address has no path, `/v1` is added. Also returns the
/// API of the call; `None` if the address contains no call.
pub(super) fn base(url: &str) -> (String, Option<&'static str>) {
    for (call, api) in [("/chat/completions", "chat"), ("/completions", "completions"), ("/messages", "messages")] {
        if let Some(base) = url.strip_suffix(call) {
            return (base.to_owned(), Some(api));
        }
    }
    let has_path = url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    (if has_path { url.to_owned() } else { format!("{url}/v1") }, None)
}

/// Returns the base address of an API from user input, which may have the form `host:port`, lack `/v1`, or
/// end with the path of a call. Also returns whether the input contained a secret, which is removed.
pub(crate) fn api_base(text: &str) -> Result<(String, bool), String> {
    let read = address(text)?;
    Ok((base(&read.url).0, read.had_secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_their_secrets_and_get_a_base() {
        let read = address("https://me:pass@host/v1/?api_key=x#y").unwrap();
        assert_eq!((read.url.as_str(), read.had_secret), ("https://host/v1", true));
        let read = address("host:8000").unwrap();
        assert_eq!((read.url.as_str(), read.had_secret, read.is_changed), ("http://host:8000", false, true));
        assert!(address("ftp://x").is_err() && address("http://").is_err() && address("&").is_err());
        assert_eq!(api_base("h:1"), Ok(("http://h:1/v1".to_owned(), false)));
        assert_eq!(api_base("h:1/v1/completions?key=x"), Ok(("http://h:1/v1".to_owned(), true)));
        assert_eq!(base("http://h:1"), ("http://h:1/v1".to_owned(), None));
        assert_eq!(base("http://h/api/v1/chat/completions"), ("http://h/api/v1".to_owned(), Some("chat")));
    }
}
