//! How the failed requests of the window ended, with their messages.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::rows::{Facts, Measured, Outcome};

use super::window;

/// The failed requests of the window that have the same outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// Their outcome as recorded in the rows: http_500, reset, …
    #[serde(serialize_with = "in_words")]
    #[schemars(with = "String")]
    pub outcome: Outcome,
    /// Number of failed requests with this outcome.
    pub count: u64,
    /// The message of the first of these requests that has one (the server's own message if it sent
    /// one); null if none has a message.
    pub message: Option<String>,
}

fn in_words<S: Serializer>(outcome: &Outcome, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(outcome)
}

/// The outcomes of the failed requests of the window, the most frequent first; ties are in order of
/// appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures(pub Vec<Failure>);

impl Failures {
    /// Collects the outcomes of the window's requests.
    pub fn of(rows: &[Measured], facts: &Facts) -> Failures {
        let mut failures: Vec<Failure> = Vec::new();
        for row in window::members(rows, facts).filter(|row| !row.outcome.is_ok()) {
            let at = failures.iter().position(|failure| failure.outcome == row.outcome).unwrap_or_else(|| {
                failures.push(Failure { outcome: row.outcome, count: 0, message: None });
                failures.len() - 1
            });
            let failure = &mut failures[at];
            failure.count += 1;
            if failure.message.is_none() {
                // A response without a body has no message.
                failure.message = row.error().filter(|words| !words.trim().is_empty()).map(str::to_owned);
            }
        }
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
        Failures(failures)
    }

    /// Lists the outcomes: `424 http_500`, `10 http_500, 2 reset`; empty if none failed.
    pub fn kinds(&self) -> String {
        let kind = |Failure { outcome, count, .. }: &Failure| format!("{count} {outcome}");
        self.0.iter().map(kind).collect::<Vec<_>>().join(", ")
    }

    /// Returns the message of the most frequent outcome, or of the next most frequent one that has a
    /// message.
    pub fn message(&self) -> Option<&str> {
        self.0.iter().find_map(|failure| failure.message.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, fail};

    #[test]
    fn the_most_frequent_failure_comes_first() {
        let (mut records, facts) = Run { seconds: 1.0, ..Run::default() }.make();
        let inside = |row: &Measured| window::contains(&facts.windows, row.scheduled_ns);
        let window: Vec<usize> = (0..records.len()).filter(|at| inside(&Measured::from(&records[*at].row))).collect();
        for (at, outcome) in [(0, Outcome::Reset), (1, Outcome::Http(500)), (2, Outcome::Http(500))] {
            fail(&mut records[window[at]], outcome, 1_000_000);
        }
        let rows: Vec<Measured> = records.iter().map(|record| Measured::from(&record.row)).collect();
        let failures = Failures::of(&rows, &facts);
        assert_eq!((failures.kinds().as_str(), failures.message()), ("2 http_500, 1 reset", None));
        assert_eq!(Failures::default().kinds(), "");
    }
}
