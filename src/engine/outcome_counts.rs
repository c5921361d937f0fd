//! Counts the requests of a run by outcome, for observers. One task counts and others may read at any
//! time; neither side waits.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::rows::Outcome;

/// The outcomes other than HTTP statuses, the most frequent first; the statuses follow them.
const NAMED: [Outcome; 10] = [
    Outcome::Ok,
    Outcome::Connect,
    Outcome::Timeout,
    Outcome::Reset,
    Outcome::Stalled,
    Outcome::Malformed,
    Outcome::StreamError,
    Outcome::Empty,
    Outcome::ServerDied,
    Outcome::CutAtDrain,
];

/// Statuses are below this value; a higher one, which no server should send, is counted as the last
/// status.
const STATUSES: usize = 1000;

/// Requests by outcome.
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

    /// Returns the outcomes that occurred, with their numbers.
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
