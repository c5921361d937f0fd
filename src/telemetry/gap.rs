//! Why a scrape failed.

use super::page::PageError;

/// The reason why a scrape returned no values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The reason as one word, for the `error` column of samples.
    pub(crate) kind: &'static str,
    /// The reason in full, for messages.
    pub(crate) why: String,
}

impl From<PageError> for Gap {
    fn from(error: PageError) -> Gap {
        let kind = match error {
            PageError::Malformed(_) => "malformed",
            PageError::TooMany => "too_large",
        };
        Gap { kind, why: format!("not a page of metrics: {error}") }
    }
}
