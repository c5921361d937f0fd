//! The search for the highest load that holds, that is, at which the generator's errors are acceptable. The
//! level of the load is doubled until it fails, followed by bisection. The next level depends only on the
//! results so far.

/// The state of a search, with the results of the levels that were tried so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Search {
    held: Option<u64>,
    failed: Option<u64>,
    first: u64,
    most: u64,
}

impl Search {
    /// Creates a search that begins at level `first` and never tries a level above `most`.
    pub(super) fn new(first: u64, most: u64) -> Search {
        let most = most.max(1);
        Search { held: None, failed: None, first: first.clamp(1, most), most }
    }

    /// Records whether `level` holds.
    pub(crate) fn learn(&mut self, level: u64, holds: bool) {
        if holds {
            self.held = self.held.max(Some(level));
        } else {
            self.failed = Some(self.failed.map_or(level, |failed| failed.min(level)));
        }
        // If a lower level failed, a higher level that held is ignored, because all levels up to the
        // reported limit must hold.
        if let (Some(held), Some(failed)) = (self.held, self.failed)
            && held >= failed
        {
            self.held = None;
        }
    }

    /// Returns the level to try next; `None` if the limit is known precisely enough, or if no level is left
    /// to try.
    pub(super) fn next(&self) -> Option<u64> {
        match (self.held, self.failed) {
            (None, None) => Some(self.first),
            (Some(held), None) => (held < self.most).then(|| held.saturating_mul(2).min(self.most)),
            (None, Some(failed)) => (failed > 1).then_some(failed / 2),
            (Some(held), Some(failed)) => {
                let distance = failed - held;
                // A precision of one eighth is enough, because the performance of machines varies by more
                // than that from one minute to the next.
                (distance > (held / 8).max(1)).then_some(held + distance / 2)
            }
        }
    }

    /// Returns the highest level that held; `None` if there is none.
    pub(super) fn held(&self) -> Option<u64> {
        self.held
    }

    /// Returns the lowest level that failed; `None` if there is none.
    pub(super) fn failed(&self) -> Option<u64> {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_ends_near_the_true_limit(limit in 0u64..5_000, first in 0u64..20_000, most in 1u64..10_000) {
            let mut search = Search::new(first, most);
            let mut asked = Vec::new();
            while let Some(level) = search.next() {
                prop_assert!(level >= 1 && level <= most && !asked.contains(&level), "{level} after {asked:?}");
                asked.push(level);
                search.learn(level, level <= limit);
            }
            prop_assert!(asked.len() <= 24, "{asked:?}");
            match (search.held(), search.failed()) {
                (Some(held), None) => prop_assert!(held == most && held <= limit),
                (Some(held), Some(failed)) => {
                    prop_assert!(held <= limit && limit < failed && failed - held <= (held / 8).max(1));
                }
                (None, failed) => prop_assert!(limit == 0 && failed == Some(1)),
            }
        }

        #[test]
        fn whatever_it_learns_it_asks_for_something_in_between(told in prop::collection::vec((1u64..100, any::<bool>()), 0..20)) {
            let mut search = Search::new(8, 100);
            for (level, holds) in told {
                search.learn(level, holds);
                if let (Some(held), Some(failed)) = (search.held(), search.failed()) {
                    prop_assert!(held < failed);
                }
            }
            if let Some(next) = search.next() {
                prop_assert!(search.held().is_none_or(|held| next > held));
                prop_assert!(search.failed().is_none_or(|failed| next < failed));
            }
        }
    }
}
