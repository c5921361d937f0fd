//! The headers that protocols require in every request: the API key, and the version of the API.

use http::HeaderValue;
use http::header::InvalidHeaderValue;

/// The header in which a protocol carries the API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHeader {
    /// The name, in lower case.
    pub name: &'static str,
    /// The name and the form of the value, for messages.
    pub shown: &'static str,
    /// The part of the value before the key.
    scheme: &'static str,
}

impl KeyHeader {
    /// A bearer token, as in OpenAI's APIs.
    pub const BEARER: KeyHeader =
        KeyHeader { name: "authorization", shown: "Authorization: Bearer …", scheme: "Bearer " };
    /// The header of Anthropic's API.
    pub(super) const X_API_KEY: KeyHeader = KeyHeader { name: "x-api-key", shown: "x-api-key: …", scheme: "" };

    /// Returns the header with this key.
    pub fn with(self, key: &str) -> RequestHeader {
        RequestHeader { name: self.name, value: format!("{}{key}", self.scheme), is_secret: true }
    }
}

/// A header of a request. Its value may contain the API key, so it must never be printed.
pub struct RequestHeader {
    /// The name, in lower case.
    pub name: &'static str,
    /// The value.
    pub value: String,
    /// Whether the value contains the API key.
    pub is_secret: bool,
}

impl RequestHeader {
    /// Creates a header without a secret.
    pub(super) fn public(name: &'static str, value: &str) -> RequestHeader {
        RequestHeader { name, value: value.to_owned(), is_secret: false }
    }

    /// Returns the value as bytes for the wire, marked as sensitive if it contains the key.
    ///
    /// # Errors
    /// Fails if a header cannot carry the value, for example because it contains a line break.
    pub(crate) fn encoded(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let mut value = HeaderValue::try_from(&self.value)?;
        value.set_sensitive(self.is_secret);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::Api;

    /// Returns the headers of requests with a key, each as `name: value`.
    fn headers(api: Api, key: Option<&str>) -> Vec<String> {
        let headers = api.protocol().headers(key);
        headers.iter().map(|header| format!("{}: {}", header.name, header.value)).collect()
    }

    #[test]
    fn each_api_carries_the_key_in_its_own_header() {
        for api in Api::ALL.into_iter().filter(|api| *api != Api::Messages) {
            assert_eq!(headers(api, Some("k")), ["authorization: Bearer k"]);
            assert!(headers(api, None).is_empty());
        }
        assert_eq!(headers(Api::Messages, Some("k")), ["x-api-key: k", "anthropic-version: 2023-06-01"]);
        assert_eq!(headers(Api::Messages, None), ["anthropic-version: 2023-06-01"]);
    }

    #[test]
    fn only_the_key_is_sensitive() {
        let headers = Api::Messages.protocol().headers(Some("k"));
        let sensitive: Vec<bool> = headers.iter().map(|header| header.encoded().unwrap().is_sensitive()).collect();
        assert_eq!(sensitive, [true, false]);
        assert!(Api::Chat.protocol().headers(Some("a\nb"))[0].encoded().is_err());
    }
}
