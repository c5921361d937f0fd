//! The two figures for the highest load that meets an objective: *shown*, the highest load that holds at 95 %,
//! and *observed*, the highest load that met the objective in what was seen. Searches and curves use the same
//! rule.

use crate::analysis::slo::Answer;

/// What all runs of one load show together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// The load.
    pub load: f64,
    /// The result of the tests; `None` if no run provides evidence.
    pub answer: Option<Answer>,
    /// Whether the runs met the objective in what was seen, whether or not this is shown; `None` if nothing
    /// was seen.
    pub met: Option<bool>,
}

/// The highest load that meets an objective. `shown` is never above `observed`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Highest {
    /// The highest load that holds, below the lowest load that is shown to miss; `None` if no load holds
    /// there.
    pub shown: Option<f64>,
    /// The highest load that met the objective in what was seen; `None` if no load did.
    pub observed: Option<f64>,
    /// The lowest load above `observed` that missed the objective; `None` if no load did.
    pub missed: Option<Missed>,
    /// The lowest load that is shown to miss the objective; `None` if no load is.
    pub misses: Option<f64>,
}

/// A load that missed the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Missed {
    /// The load.
    pub load: f64,
    /// Whether the miss is shown at 95 %, rather than only observed.
    pub is_shown: bool,
}

impl Highest {
    /// Finds both figures from the loads in rising order. `found` is the result of a search, which has weighed
    /// all of its runs: no higher load counts as observed unless it is shown. Without a result, the lowest load
    /// that missed ends the loads that count as observed.
    pub fn of(seen: &[Seen], found: Option<f64>) -> Highest {
        let misses = seen.iter().position(|one| one.answer == Some(Answer::Misses));
        let below = &seen[..misses.unwrap_or(seen.len())];
        let shown = below.iter().rfind(|one| one.answer == Some(Answer::Holds)).map(|one| one.load);
        let first_missed = below.iter().find(|one| one.met == Some(false)).map(|one| one.load);
        let counts = |load: f64| match found {
            Some(found) => load <= found,
            None => first_missed.is_none_or(|missed| load < missed),
        };
        let met = below.iter().rfind(|one| one.met == Some(true) && counts(one.load)).map(|one| one.load);
        let observed = shown.into_iter().chain(met).reduce(f64::max);
        let is_above = |one: &&Seen| observed.is_none_or(|observed| one.load > observed);
        let missed = seen.iter().filter(is_above).find(|one| one.met == Some(false));
        let missed = missed.map(|one| Missed { load: one.load, is_shown: one.answer == Some(Answer::Misses) });
        Highest { shown, observed, missed, misses: misses.map(|at| seen[at].load) }
    }

    /// Formats both figures: `shown 19.2 qps, observed 54.8 qps`; `none` stands for a figure that does not
    /// exist. `write` formats a load with its unit.
    pub fn words(&self, write: impl Fn(f64) -> String) -> String {
        let of = |load: Option<f64>| load.map_or_else(|| "none".to_owned(), &write);
        format!("shown {}, observed {}", of(self.shown), of(self.observed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: [(Option<Answer>, Option<bool>); 6] = [
        (None, None),
        (Some(Answer::Holds), Some(true)),
        (Some(Answer::Misses), Some(false)),
        (Some(Answer::Undecided), Some(true)),
        (Some(Answer::Undecided), Some(false)),
        (Some(Answer::Undecided), None),
    ];

    /// All sequences of results at up to four loads, each with every result that a search could have.
    fn all(mut check: impl FnMut(&[Seen], Option<f64>)) {
        for loads in 0..=4 {
            for number in 0..RESULTS.len().pow(loads) {
                let of = |at: u32| {
                    let (answer, met) = RESULTS[number / RESULTS.len().pow(at) % RESULTS.len()];
                    Seen { load: f64::from(at + 1), answer, met }
                };
                let seen: Vec<Seen> = (0..loads).map(of).collect();
                check(&seen, None);
                (1..=loads).for_each(|found| check(&seen, Some(f64::from(found))));
            }
        }
    }

    #[test]
    fn shown_is_never_above_observed_and_both_were_seen() {
        let mut count = 0;
        all(|seen, found| {
            count += 1;
            let highest = Highest::of(seen, found);
            let Highest { shown, observed, missed, misses } = highest;
            let at = |load: f64| seen.iter().find(|one| one.load == load).expect("a load that was seen");
            assert!(shown.is_none_or(|shown| Some(shown) <= observed), "{seen:?} {found:?}: {highest:?}");
            assert!(shown.is_none_or(|shown| at(shown).answer == Some(Answer::Holds)), "{seen:?}: {highest:?}");
            assert!(observed.is_none_or(|load| at(load).met == Some(true)), "{seen:?} {found:?}: {highest:?}");
            assert!(missed.is_none_or(|missed| at(missed.load).met == Some(false)), "{seen:?}: {highest:?}");
            assert!(
                missed.is_none_or(|missed| observed.is_none_or(|observed| missed.load > observed)),
                "{seen:?} {found:?}: {highest:?}"
            );
            // No load at or below either figure is shown to miss.
            let is_missed = |one: &&Seen| one.answer == Some(Answer::Misses);
            let first = seen.iter().find(is_missed).map(|one| one.load);
            assert!(first.is_none_or(|first| observed < Some(first)), "{seen:?} {found:?}: {highest:?}");
            assert_eq!(misses, first, "{seen:?} {found:?}");
            // A load that holds counts, whatever the search found.
            let holds = |one: &&Seen| one.answer == Some(Answer::Holds) && first.is_none_or(|first| one.load < first);
            assert_eq!(shown, seen.iter().filter(holds).map(|one| one.load).reduce(f64::max), "{seen:?} {found:?}");
            // A result that was seen to meet the objective is what was observed.
            let is_met = |load: f64| at(load).met == Some(true) && first.is_none_or(|first| load < first);
            if let Some(found) = found.filter(|found| is_met(*found)) {
                assert!(observed >= Some(found), "{seen:?} {found:?}: {highest:?}");
            }
        });
        assert_eq!(count, (0..=4u32).map(|loads| 6usize.pow(loads) * (loads as usize + 1)).sum::<usize>());
    }

    #[test]
    fn both_figures_have_fixed_names() {
        let words =
            |shown, observed| Highest { shown, observed, ..Highest::default() }.words(|load| format!("{load} qps"));
        assert_eq!(words(Some(19.2), Some(54.8)), "shown 19.2 qps, observed 54.8 qps");
        assert_eq!(words(None, Some(54.8)), "shown none, observed 54.8 qps");
        assert_eq!(words(None, None), "shown none, observed none");
    }
}
