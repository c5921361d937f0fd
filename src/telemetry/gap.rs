//! Why a scrape failed.

use super::page::PageError;

/// Why there is no reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Returns the reason as one word, for rows.
    pub(crate) kind: &'static str,
    /// A description.
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
