//! Why the server ended the completed responses of the window.

use schemars::JsonSchema;
use serde::Serialize;

use crate::rows::{Facts, Measured};

use super::window;

/// The completed responses of the window that ended for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FinishCount {
    /// The reason, as the server states it; null if it stated none.
    pub reason: Option<String>,
    /// Number of responses.
    pub count: u64,
}

/// The finish reasons of the completed responses of the window, the most frequent first; ties are in order of
/// appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinishReasons(pub Vec<FinishCount>);

impl FinishReasons {
    /// Counts the reasons.
    pub fn of(rows: &[Measured], facts: &Facts) -> FinishReasons {
        let mut counts: Vec<FinishCount> = Vec::new();
        for row in window::members(rows, facts).filter(|row| row.outcome.is_ok()) {
            let reason = row.finish_reason();
            match counts.iter_mut().find(|known| known.reason.as_deref() == reason) {
                Some(known) => known.count += 1,
                None => counts.push(FinishCount { reason: reason.map(str::to_owned), count: 1 }),
            }
        }
        counts.sort_by_key(|known| std::cmp::Reverse(known.count));
        FinishReasons(counts)
    }

    /// Lists the reasons: `95 stop, 5 content_filter`; empty if no response states one.
    pub fn kinds(&self) -> String {
        if self.0.iter().all(|known| known.reason.is_none()) {
            return String::new();
        }
        let kinds = self.0.iter().map(|FinishCount { reason, count }| {
            let reason = reason.as_deref().unwrap_or("without a reason");
            format!("{count} {reason}")
        });
        kinds.collect::<Vec<_>>().join(", ")
    }

    /// Whether responses ended for a reason other than the end of the text or the requested length.
    pub fn are_unusual(&self) -> bool {
        let reasons = self.0.iter().filter_map(|known| known.reason.as_deref());
        reasons.into_iter().any(|reason| !matches!(reason, "stop" | "length"))
    }
}
