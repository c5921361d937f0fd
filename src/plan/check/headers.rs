//! Checks of headers: HTTP must allow their names, sweepline must not send them itself, their values must
//! be valid in a header, and no secret may be in plain text.

use std::collections::HashSet;

use http::{HeaderName, HeaderValue};

use super::checker::Checker;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::headers::is_sent_by_itself;
use crate::plan::model::table::Table;
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::plan::text::tree::Step;
use crate::protocol::KeyHeader;
use crate::units::secrecy::{is_secret_name, looks_like_key};
use crate::units::text::is_variable;

impl Checker<'_> {
    /// Checks the headers at path `at`, which are sent to `endpoints`.
    pub(super) fn headers(&mut self, at: &[Step], headers: &Table<TextOrSecret>, endpoints: &[&Endpoint]) {
        let mut seen: HashSet<String> = HashSet::new();
        for (name, value) in headers {
            let place = [at, &[Step::from(name.as_str())]].concat();
            let lower = name.to_ascii_lowercase();
            let refused = if HeaderName::try_from(name.as_str()).is_err() {
                Some((
                    format!("`{name}` is not a valid header name"),
                    "write letters, digits and dashes, like X-Tenant",
                ))
            } else if lower == "host" {
                let remedy = "remove it, and write the name of the server as `host` of the endpoint";
                Some((format!("`{name}` is sent by sweepline itself"), remedy))
            } else if is_sent_by_itself(name) || endpoints.iter().any(|endpoint| states_version(endpoint, &lower)) {
                Some((format!("`{name}` is sent by sweepline itself"), "remove it"))
            } else if let Some(header) = endpoints.iter().find_map(|endpoint| key_in(endpoint, &lower)) {
                let message = format!("`api_key` is sent as `{}`, but `headers` also sets that header", header.shown);
                Some((message, "keep one of the two"))
            } else if !seen.insert(lower) {
                Some((format!("`{name}` appears twice: header names are case-insensitive"), "remove one"))
            } else {
                None
            };
            if let Some((message, remedy)) = refused {
                self.report_key(&place, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
                continue;
            }
            match value {
                TextOrSecret::Secret(secret) => self.secret(&[&place[..], &[Step::from("secret")]].concat(), secret),
                TextOrSecret::Text(text) => self.header_text(&place, name, text),
            }
        }
    }

    fn header_text(&mut self, at: &[Step], name: &str, text: &str) {
        let is_carried = HeaderValue::from_str(text).is_ok_and(|value| value.to_str().is_ok());
        if is_secret_name(name) || text.split_whitespace().any(looks_like_key) {
            let message = format!("the value of header `{name}` looks like a secret and would end up in results");
            let remedy =
                format!("put the secret into an environment variable and write {name}: {{ secret: env:NAME }}");
            self.report(at, Diagnostic::new(Code::Secret, message).remedy(remedy));
        } else if let Some(reference) = reference_in(text) {
            let message = format!(
                "header `{name}` would be sent literally as `{text}`: references in plain text are not resolved"
            );
            let remedy = format!("write {name}: {{ secret: {reference} }}");
            self.report(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        } else if text.is_empty() || text.trim() != text || !is_carried {
            let message = format!("header `{name}` cannot carry this value");
            let remedy = "write visible ASCII characters, without leading or trailing spaces";
            self.report(at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
    }
}

/// Whether requests to the endpoint state the version of the API in the header `name`, in lower case.
fn states_version(endpoint: &Endpoint, name: &str) -> bool {
    endpoint.api.protocol().version_header().is_some_and(|(own, _)| own == name)
}

/// The header `name`, in lower case, if it carries the API key of the endpoint.
fn key_in(endpoint: &Endpoint, name: &str) -> Option<KeyHeader> {
    let header = endpoint.api.protocol().key_header();
    (endpoint.api_key.is_some() && header.name == name).then_some(header)
}

/// The reference that a text was probably meant to be; `None` if it does not look like one. In plain text,
/// `$NAME`, `${NAME}`, `env:NAME` and `file:PATH` would be sent literally.
fn reference_in(text: &str) -> Option<String> {
    let in_braces = |name: &str| Some(name.strip_prefix('{')?.strip_suffix('}')?.to_owned());
    if let Some(name) = text.strip_prefix('$') {
        let name = in_braces(name).unwrap_or_else(|| name.to_owned());
        return is_variable(&name).then(|| format!("env:{name}"));
    }
    let is_reference = text.strip_prefix("env:").is_some_and(is_variable) || text.starts_with("file:");
    is_reference.then(|| text.to_owned())
}
