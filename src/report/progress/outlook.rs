//! The starts of servers that a running sweep still needs, and how long they will take: as long as the median of
//! the starts that were measured so far, in earlier results and in this sweep.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What is known about a sweep's duration before it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outlook {
    /// Time that the sweep takes for each second of its runs and starts; below 1 if resources work in parallel.
    pub(crate) pace: f64,
    /// For each endpoint: the durations of the earlier starts of its servers, in seconds.
    pub(crate) starts: HashMap<String, Vec<f64>>,
}

impl Default for Outlook {
    /// The outlook without any earlier start, for runs that are executed one after another.
    fn default() -> Outlook {
        Outlook { pace: 1.0, starts: HashMap::new() }
    }
}

/// The starts that a sweep still needs.
#[derive(Debug, Default)]
pub(super) struct StartsAhead {
    /// For each endpoint: the number of starts that have not ended.
    left: HashMap<String, usize>,
    /// For each endpoint: the durations of all starts so far, in seconds.
    lengths: HashMap<String, Vec<f64>>,
    /// For each endpoint whose server is starting: when the start began.
    begun: HashMap<String, Instant>,
}

impl StartsAhead {
    /// Creates the state before the sweep begins. `lengths` are the durations of earlier starts by endpoint, in
    /// seconds.
    pub(super) fn knowing(lengths: HashMap<String, Vec<f64>>) -> StartsAhead {
        StartsAhead { lengths, ..StartsAhead::default() }
    }

    /// Sets the starts that are to come, each given by its endpoint.
    pub(super) fn expect(&mut self, endpoints: &[String]) {
        self.left.clear();
        for endpoint in endpoints {
            *self.left.entry(endpoint.clone()).or_default() += 1;
        }
    }

    /// Records that a start has begun.
    pub(super) fn begin(&mut self, endpoint: &str) {
        self.begun.insert(endpoint.to_owned(), Instant::now());
    }

    /// Records that a server is ready after this time.
    pub(super) fn ready(&mut self, endpoint: &str, after: Duration) {
        self.lengths.entry(endpoint.to_owned()).or_default().push(after.as_secs_f64());
        self.ended(endpoint);
    }

    /// Records that a start has ended, whether the server is ready or not.
    pub(super) fn ended(&mut self, endpoint: &str) {
        self.begun.remove(endpoint);
        if let Some(left) = self.left.get_mut(endpoint) {
            *left = left.saturating_sub(1);
        }
    }

    /// Returns the total time of the starts that are to come, in seconds, and the number of those whose duration
    /// is unknown. `waiting` is the number of runs on each endpoint that have not begun, because an endpoint
    /// without such runs needs no more starts.
    pub(super) fn remaining(&self, waiting: &HashMap<&str, usize>) -> (f64, usize) {
        let (mut seconds, mut unknown) = (0.0, 0);
        for (endpoint, left) in &self.left {
            let left = (*left).min(waiting.get(endpoint.as_str()).copied().unwrap_or(0));
            match self.median(endpoint) {
                Some(each) => {
                    let passed = self.begun.get(endpoint).map_or(0.0, |begun| begun.elapsed().as_secs_f64());
                    seconds += (each * left as f64 - passed.min(each)).max(0.0);
                }
                None => unknown += left,
            }
        }
        (seconds, unknown)
    }

    fn median(&self, endpoint: &str) -> Option<f64> {
        let mut lengths = self.lengths.get(endpoint)?.clone();
        lengths.sort_by(f64::total_cmp);
        lengths.get(lengths.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_unknown_until_one_was_measured_and_then_as_long_as_the_median() {
        let mut starts = StartsAhead::default();
        starts.expect(&["a", "a", "a", "b"].map(str::to_owned));
        let runs = HashMap::from([("a", 3), ("b", 1)]);
        assert_eq!(starts.remaining(&runs), (0.0, 4));
        starts.begin("a");
        starts.ready("a", Duration::from_secs(20));
        assert_eq!(starts.remaining(&runs), (40.0, 1));
        starts.ready("a", Duration::from_secs(30));
        assert_eq!(starts.remaining(&runs), (30.0, 1));
        // A server that does not start takes no more time, and an endpoint without runs needs no start.
        starts.ended("b");
        assert_eq!(starts.remaining(&runs), (30.0, 0));
        assert_eq!(starts.remaining(&HashMap::new()), (0.0, 0));
    }

    #[test]
    fn earlier_starts_count() {
        let mut starts = StartsAhead::knowing(HashMap::from([("a".to_owned(), vec![9.0, 10.0, 11.0])]));
        starts.expect(&["a".to_owned(), "a".to_owned()]);
        assert_eq!(starts.remaining(&HashMap::from([("a", 5)])), (20.0, 0));
        assert_eq!(starts.remaining(&HashMap::from([("a", 1)])), (10.0, 0), "one run needs one start at most");
    }
}
