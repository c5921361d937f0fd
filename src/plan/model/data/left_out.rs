//! The skipped entries of a data set, with the reasons.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dataset::Place;

/// The reason for records without a text.
pub(crate) const NO_TEXT: &str = "no text";

/// The reason for records without a response, if responses determine the output length.
pub(crate) const UNANSWERED: &str = "no answer";

/// Counts one more skipped entry.
pub(crate) fn count(left_out: &mut BTreeMap<String, LeftOut>, why: &str, place: Place) {
    let Place { line, entry } = place;
    left_out.entry(why.to_owned()).or_insert(LeftOut { count: 0, first: line, entry }).count += 1;
}

/// All skipped entries as text: `3 no answer (first at 7), 1 no text (first at 2)`, with lines or rows.
pub(crate) fn all(left_out: &BTreeMap<String, LeftOut>) -> String {
    let mut reasons: Vec<(&String, &LeftOut)> = left_out.iter().collect();
    reasons.sort_by_key(|(why, left_out)| (std::cmp::Reverse(left_out.count), why.as_str()));
    let words = |(why, left_out): (&String, &LeftOut)| {
        let LeftOut { count, first, entry } = *left_out;
        format!("{count} {why} (first at {})", Place { line: first, entry })
    };
    reasons.into_iter().map(words).collect::<Vec<_>>().join(", ")
}

/// Entries that were skipped for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Number of entries.
    pub count: u64,
    /// The line of the first such entry, or its row in a Parquet file.
    pub first: u64,
    /// The position of the first such entry in a JSON array, from 1; `None` if every entry has its own
    /// line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
}
