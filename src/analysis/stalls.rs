//! Stalls: how long a response paused between its tokens, as observed by the client.
//!
//! A stall is a gap between two token events that is more than five times the median gap of the same
//! response; its duration is the excess over that median. Sarathi-Serve (Agrawal et al., OSDI 2024,
//! section 3.2) calls such a gap a "generation stall": decoding waits while the prompts of other requests are
//! computed. The paper gives no limit. The limits here are chosen, not measured: a factor of five is
//! above the largest gap if the pace varies by ±50 %, and above the double step of a token that was
//! computed but held back.
//!
//! Stalls are unknown, and null, if the gaps have no steady pace. This is the case if there are fewer
//! than eight gaps; if the median is below 1 ms, because several tokens then arrive together and the
//! median measures writes rather than steps; or if more than one gap in ten is long, because the long
//! gaps are then the pace.

use crate::rows::{Facts, Measured, Replay};

use super::window::contains;

/// A gap is a stall if it is longer than this many times the median gap.
const TIMES: u64 = 5;
/// Minimum number of gaps that is needed to determine a pace.
const FEWEST: usize = 8;
/// Minimum median gap that is needed to determine a pace.
const SHORTEST_NS: u64 = 1_000_000;
/// At most one in this many gaps may be long.
const ONE_IN: usize = 10;

/// Returns how long a response with these gaps stalled, in nanoseconds; `None` if the gaps have no steady
/// pace. `room` is scratch memory and is overwritten.
pub fn stalled_ns(gaps: &[u64], room: &mut Vec<u64>) -> Option<u64> {
    if gaps.is_empty() {
        return Some(0);
    }
    if gaps.len() < FEWEST {
        return None;
    }
    room.clear();
    room.extend_from_slice(gaps);
    let middle = room.len() / 2;
    let median = *room.select_nth_unstable(middle).1;
    if median < SHORTEST_NS {
        return None;
    }
    let long = || gaps.iter().filter(|gap| **gap / TIMES >= median && **gap > median.saturating_mul(TIMES));
    (long().count() * ONE_IN <= gaps.len()).then(|| long().map(|gap| gap - median).fold(0, u64::saturating_add))
}

/// The stalls of the requests that completed in the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Number of requests whose stalls are known.
    pub known: u64,
    /// Number of requests whose stalls are unknown.
    pub unknown: u64,
    sum_ns: u64,
}

impl Stalls {
    /// Collects the stalls of a run.
    pub fn of<R: Replay + ?Sized>(run: &R, facts: &Facts) -> Result<Stalls, R::Error> {
        let mut stalls = Stalls::default();
        if !facts.stream {
            return Ok(stalls);
        }
        let mut room = Vec::new();
        run.replay(&mut |row, gaps| stalls.take(row, gaps, facts, &mut room))?;
        Ok(stalls)
    }

    fn take(&mut self, row: &Measured, gaps: &[u64], facts: &Facts, room: &mut Vec<u64>) {
        let ended = row.done_ns().is_some_and(|at| contains(&facts.windows, at));
        if !row.outcome.is_ok() || !ended {
            return;
        }
        match stalled_ns(gaps, room) {
            Some(ns) => (self.known, self.sum_ns) = (self.known + 1, self.sum_ns.saturating_add(ns)),
            None => self.unknown += 1,
        }
    }

    /// Returns the mean stall time in milliseconds, over the requests whose stalls are known; `None` if
    /// there are no such requests.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.known > 0).then(|| self.sum_ns as f64 / self.known as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn stalled(gaps: &[u64]) -> Option<u64> {
        stalled_ns(gaps, &mut Vec::new())
    }

    /// Returns 40 gaps of 20 ms, except for the given ones.
    fn with(others: &[(usize, u64)]) -> Vec<u64> {
        let mut gaps = vec![20 * MS; 40];
        others.iter().for_each(|(at, gap)| gaps[*at] = *gap);
        gaps
    }

    #[test]
    fn a_stall_is_what_a_long_gap_has_over_the_median() {
        assert_eq!(stalled(&with(&[])), Some(0));
        assert_eq!(stalled(&with(&[(7, 100 * MS)])), Some(0), "exactly five times is not a stall");
        assert_eq!(stalled(&with(&[(7, 101 * MS), (20, 420 * MS)])), Some(481 * MS));
        assert_eq!(stalled(&with(&[(39, u64::MAX)])), Some(u64::MAX - 20 * MS));
    }

    #[test]
    fn without_a_pace_nothing_is_known() {
        assert_eq!(stalled(&[]), Some(0), "a response of one token cannot stall");
        assert_eq!(stalled(&[20 * MS; FEWEST - 1]), None);
        let bunches: Vec<u64> = (0..64).map(|at| if at % 16 == 15 { 20 * MS } else { 10_000 }).collect();
        assert_eq!(stalled(&bunches), None, "sixteen tokens of one step");
        let fifth: Vec<u64> = (0..40).map(|at| if at % 5 == 4 { 200 * MS } else { 20 * MS }).collect();
        assert_eq!(stalled(&fifth), None, "one in five is long");
    }

    proptest! {
        #[test]
        fn a_pace_that_varies_by_half_has_no_stall(gaps in prop::collection::vec(10 * MS..30 * MS, 8..200)) {
            prop_assert_eq!(stalled(&gaps), Some(0));
        }
    }
}
