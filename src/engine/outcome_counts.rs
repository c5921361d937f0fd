//! Counts the requests of a run by outcome, for displays of its progress. One task counts, and other
//! threads may read at any time; neither side waits for the other.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::rows::Outcome;

/// The outcomes other than HTTP statuses, roughly the most frequent first. In the array of counts, the
/// statuses follow them.
const NAMED: [Outcome; 12] = [
    Outcome::Ok,
    Outcome::Connect,
    Outcome::Timeout,
    Outcome::Reset,
    Outcome::Stalled,
    Outcome::Malformed,
    Outcome::StreamError,
    Outcome::Empty,
    Outcome::Aborted,
    Outcome::NotStreamed,
    Outcome::ServerDied,
    Outcome::CutAtDrain,
];

/// Number of HTTP statuses that are counted separately. A higher status, which no server should send, is
/// counted as the highest of these.
const STATUSES: usize = 1000;

/// Number of requests by outcome.
#[derive(Debug)]
pub struct OutcomeCounts(Box<[AtomicU64]>);

impl Default for OutcomeCounts {
    fn default() -> OutcomeCounts {
        OutcomeCounts((0..NAMED.len() + STATUSES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl OutcomeCounts {
    /// Counts a request that has ended.
    pub(super) fn add(&self, outcome: Outcome) {
        let place = match outcome {
            Outcome::Http(status) => Some(NAMED.len() + usize::from(status).min(STATUSES - 1)),
            named => NAMED.iter().position(|known| *known == named),
        };
        if let Some(count) = place.and_then(|place| self.0.get(place)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Returns the outcomes that occurred, with the number of requests of each.
    pub fn counts(&self) -> Vec<(Outcome, u64)> {
        let outcome = |place: usize| match NAMED.get(place) {
            Some(named) => *named,
            None => Outcome::Http((place - NAMED.len()) as u16),
        };
        let counts = self.0.iter().map(|count| count.load(Relaxed)).enumerate();
        counts.filter(|(_, count)| *count > 0).map(|(place, count)| (outcome(place), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_outcome() {
        let counts = OutcomeCounts::default();
        for outcome in [Outcome::Http(503), Outcome::Ok, Outcome::Reset, Outcome::Http(503), Outcome::Http(65_535)] {
            counts.add(outcome);
        }
        assert_eq!(
            counts.counts(),
            [(Outcome::Ok, 1), (Outcome::Reset, 1), (Outcome::Http(503), 2), (Outcome::Http(999), 1)]
        );
    }
}
