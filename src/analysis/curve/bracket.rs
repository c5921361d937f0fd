//! The two loads of a ladder between which the highest load that meets an objective lies. There is no
//! extrapolation beyond the last rung or below the first, because those loads were not measured.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::slo::Answer;

use super::decision;

/// One rung of a ladder and its result for the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The load.
    pub load: f64,
    /// Actual arrivals per second, averaged over the rung's runs; `None` in closed loops, and if no run
    /// counts.
    pub arrived_rate: Option<f64>,
    /// Whether the server serves the arrivals within the objective's latencies; `None` if the rung has
    /// no valid run.
    pub serves: Option<Answer>,
    /// Whether the rung's tokens cost no more than the objective allows; `None` if the objective sets no
    /// cost limit. Cost falls as load rises.
    pub cost: Option<Answer>,
}

impl Judged {
    /// Returns whether the whole objective holds.
    pub fn answer(&self) -> Option<Answer> {
        Some(decision::all([self.serves?].into_iter().chain(self.cost)))
    }
}

/// The two loads between which the highest load that meets the objective lies. There is no
/// extrapolation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Bracket {
    /// The highest load that holds below the first that misses; null if no load holds there.
    pub holds: Option<f64>,
    /// Actual arrivals per second at `holds`, averaged over the runs of this load; null if `holds` is
    /// null, and in closed loops.
    pub holds_arrived_rate: Option<f64>,
    /// The lowest load that misses the latency limits, saturates the server, fails so many requests that
    /// a run is invalid, or was given up; null if there is none.
    pub misses: Option<f64>,
    /// Actual arrivals per second at `misses`, averaged over the runs of this load; null if `misses`
    /// is null or has no run that counts, and in closed loops.
    pub misses_arrived_rate: Option<f64>,
    /// The basis of the interval that the two loads form: `tests of the two loads`, each wrong in at
    /// most 5 % of cases; null unless both loads exist.
    pub interval: Option<&'static str>,
    /// Loads below the first load that misses, in rising order, that are undecided or at which the
    /// server is not shown to keep up. Longer windows would decide them.
    pub undecided: Vec<f64>,
    /// Loads below the first load that misses at which tokens cost more than the objective allows, in
    /// rising order.
    pub too_dear: Vec<f64>,
    /// Loads without a valid run below the first load that misses, in rising order.
    pub unknown: Vec<f64>,
    /// Loads that hold although they are above the first load that misses; they do not count.
    pub out_of_order: Vec<f64>,
}

/// Basis of an interval whose ends are a load that holds and one that misses.
pub(crate) const TWO_LOADS: &str = "tests of the two loads";

impl Bracket {
    /// Finds the bracket of a ladder, in rising order of load.
    pub fn of(rungs: &[Judged]) -> Bracket {
        let first = rungs.iter().position(|rung| rung.serves == Some(Answer::Misses));
        let (below, above) = rungs.split_at(first.unwrap_or(rungs.len()));
        let misses = above.first();
        let mut found = Bracket {
            misses: misses.map(|rung| rung.load),
            misses_arrived_rate: misses.and_then(|rung| rung.arrived_rate),
            ..Bracket::default()
        };
        for rung in below {
            match rung.answer() {
                None => found.unknown.push(rung.load),
                // An undecided load below a load that holds does not matter, because light loads have the
                // fewest requests.
                Some(Answer::Holds) => {
                    found.holds = Some(rung.load);
                    found.holds_arrived_rate = rung.arrived_rate;
                }
                Some(Answer::Undecided) => found.undecided.push(rung.load),
                Some(Answer::Misses) => found.too_dear.push(rung.load),
            }
        }
        let holds = |rung: &&Judged| rung.answer() == Some(Answer::Holds);
        found.out_of_order = above.iter().filter(holds).map(|rung| rung.load).collect();
        found.interval = found.holds.and(found.misses).map(|_| TWO_LOADS);
        found
    }

    /// If no load misses, returns the loads that are above the highest load that holds and are
    /// undecided or have no valid run, in rising order. The limit may lie among them.
    pub fn untold_above(&self) -> Vec<f64> {
        let Some(holds) = self.holds.filter(|_| self.misses.is_none()) else { return Vec::new() };
        let untold = self.undecided.iter().chain(&self.unknown).copied();
        let mut above: Vec<f64> = untold.filter(|load| *load > holds).collect();
        above.sort_by(f64::total_cmp);
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Answer::{Holds, Misses, Undecided};

    fn priced(answers: impl IntoIterator<Item = (Option<Answer>, Option<Answer>)>) -> Bracket {
        let rung = |(n, (serves, cost))| Judged { load: (n + 1) as f64, arrived_rate: None, serves, cost };
        Bracket::of(&answers.into_iter().enumerate().map(rung).collect::<Vec<_>>())
    }

    fn bracket(answers: &[Answer]) -> Bracket {
        priced(answers.iter().map(|answer| (Some(*answer), None)))
    }

    #[test]
    fn the_highest_load_lies_between_the_last_that_holds_and_the_first_that_misses() {
        let found = bracket(&[Holds, Holds, Misses, Misses]);
        assert_eq!((found.holds, found.misses), (Some(2.0), Some(3.0)));
        assert!(found.undecided.is_empty() && found.out_of_order.is_empty());
    }

    #[test]
    fn nothing_is_extrapolated() {
        assert_eq!(bracket(&[Holds, Holds]).misses, None);
        assert_eq!(bracket(&[Misses, Misses]).holds, None);
        assert_eq!(bracket(&[]), Bracket::default());
    }

    #[test]
    fn loads_above_that_are_undecided_or_unknown_leave_the_limit_open() {
        let found = priced([Some(Holds), Some(Undecided), None, Some(Undecided)].map(|serves| (serves, None)));
        assert_eq!((found.holds, found.misses, found.untold_above()), (Some(1.0), None, vec![2.0, 3.0, 4.0]));
        // An undecided load does not matter if it is below a load that holds or above one that misses.
        for told in [bracket(&[Undecided, Holds]), bracket(&[Holds, Undecided, Misses]), bracket(&[Undecided])] {
            assert!(told.untold_above().is_empty(), "{told:?}");
        }
    }

    #[test]
    fn undecided_is_never_counted_as_held() {
        let found = bracket(&[Holds, Undecided, Holds, Misses, Holds, Undecided]);
        assert_eq!((found.holds, found.misses), (Some(3.0), Some(4.0)));
        assert_eq!((found.undecided, found.out_of_order), (vec![2.0], vec![5.0]));
        let found = bracket(&[Undecided, Undecided, Misses, Holds]);
        assert_eq!((found.holds, found.undecided, found.out_of_order), (None, vec![1.0, 2.0], vec![4.0]));
        assert_eq!(bracket(&[Holds, Holds, Undecided]).holds, Some(2.0));
    }

    #[test]
    fn a_light_load_of_few_requests_takes_nothing_from_a_heavier_one_that_holds() {
        let found = bracket(&[Undecided, Undecided, Holds, Holds, Misses]);
        assert_eq!((found.holds, found.misses, found.undecided), (Some(4.0), Some(5.0), vec![1.0, 2.0]));
    }

    #[test]
    fn cost_falls_as_load_rises_and_does_not_end_the_ladder() {
        let rungs = [(Holds, Misses), (Holds, Misses), (Holds, Holds), (Misses, Holds)];
        let found = priced(rungs.map(|(serves, cost)| (Some(serves), Some(cost))));
        assert_eq!((found.holds, found.misses, found.too_dear), (Some(3.0), Some(4.0), vec![1.0, 2.0]));
        let rungs = [(Holds, Misses), (Misses, Holds)];
        let found = priced(rungs.map(|(serves, cost)| (Some(serves), Some(cost))));
        assert_eq!((found.holds, found.misses, found.too_dear), (None, Some(2.0), vec![1.0]));
        let found = priced([(Some(Holds), Some(Undecided)), (Some(Undecided), Some(Misses))]);
        assert_eq!((found.holds, found.undecided, found.too_dear), (None, vec![1.0], vec![2.0]));
    }

    #[test]
    fn a_rung_without_a_valid_run_is_named() {
        let found =
            priced([(Some(Holds), None), (None, None), (Some(Holds), None), (Some(Misses), None), (None, None)]);
        assert_eq!((found.holds, found.misses, found.unknown), (Some(3.0), Some(4.0), vec![2.0]));
    }
}
