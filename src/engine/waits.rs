//! Records when the run waited for request contents, which is a separate cause of lateness.

use std::collections::VecDeque;

/// Number of waiting periods that are kept. For a request that was released before the oldest of these
/// periods, earlier waits are not counted.
const KEPT: usize = 64;

/// The latest periods of waiting, oldest first, in nanoseconds since the run's start. They do not overlap
/// because requests are started one at a time.
#[derive(Debug, Default)]
pub(crate) struct Waits(VecDeque<(u64, u64)>);

impl Waits {
    /// Adds a wait from `from` to `to`.
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((from, to));
    }

    /// Returns the total time waited since `instant`, in nanoseconds.
    pub(crate) fn since(&self, instant: u64) -> u64 {
        let later = self.0.iter().rev().take_while(|(_, to)| *to > instant);
        later.map(|(from, to)| to - from.max(&instant)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_after_an_instant_counts() {
        let mut waits = Waits::default();
        assert_eq!(waits.since(0), 0);
        for (from, to) in [(10, 20), (25, 25), (30, 35)] {
            waits.add(from, to);
        }
        assert_eq!([0, 15, 20, 33, 35].map(|instant| waits.since(instant)), [15, 10, 5, 2, 0]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut waits = Waits::default();
        (0..1_000).for_each(|at| waits.add(2 * at, 2 * at + 1));
        assert_eq!(waits.since(0), KEPT as u64);
    }
}
