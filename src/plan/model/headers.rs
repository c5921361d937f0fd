//! HTTP headers of requests in addition to the headers that sweepline sends itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::model::table::Table;
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::plan::text::secret::SecretRef;

/// Headers that sweepline sends itself or that define how a message is framed, in lower case.
const SENT_BY_ITSELF: [&str; 10] = [
    "host",
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "accept",
    "accept-encoding",
    "expect",
    "user-agent",
    "x-request-id",
];

/// Whether sweepline sends a header of this name itself, so that plans cannot set it.
pub fn is_sent_by_itself(name: &str) -> bool {
    SENT_BY_ITSELF.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Headers of a request by their names in lower case, as HTTP compares them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Headers(BTreeMap<String, TextOrSecret>);

impl Headers {
    /// Whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name and value of each header, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &TextOrSecret)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The references of the secret headers.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        self.0.values().filter_map(TextOrSecret::secret)
    }

    /// Applies the headers of a plan over the existing ones, by name.
    pub fn lay(&mut self, said: &Table<TextOrSecret>) {
        self.0.extend(said.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    }

    /// Applies the headers of a plan below the existing ones, so that existing values take
    /// precedence.
    pub(crate) fn lay_below(&mut self, said: &Table<TextOrSecret>) {
        for (name, value) in said {
            self.0.entry(name.to_ascii_lowercase()).or_insert_with(|| value.clone());
        }
    }
}
