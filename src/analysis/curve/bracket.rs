//! Between which two loads of a ladder the highest one lies that meets an objective. Nothing is extrapolated: what lies
//! above the last rung, or below the first, was not measured.

use crate::analysis::slo::Answer;

use super::decision;

/// One rung of a ladder and what it says of the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The load.
    pub load: f64,
    /// Whether it serves what came within the objective's latencies; none where no run of it is valid.
    pub serves: Option<Answer>,
    /// Whether its tokens cost no more than the objective allows; none where it sets no limit. Cost falls as load rises.
    pub cost: Option<Answer>,
}

impl Judged {
    /// Whether the whole objective holds.
    pub fn answer(&self) -> Option<Answer> {
        Some(decision::all([self.serves?].into_iter().chain(self.cost)))
    }
}

/// Between which loads the highest one lies that meets the objective.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bracket {
    /// The highest load that holds below the first that misses; none where no such rung holds. A rung that is undecided below it
    /// takes nothing from it: light loads are the ones with the fewest requests.
    pub holds: Option<f64>,
    /// The lowest load that does not serve what came within the latencies, or was given up; none where no rung fails to.
    pub misses: Option<f64>,
    /// Loads below the first that misses that are undecided, rising: more requests would decide them.
    pub undecided: Vec<f64>,
    /// Loads below the first that misses that serve too little for their price, rising.
    pub too_dear: Vec<f64>,
    /// Loads below the first that misses without a valid run, rising: nothing is known of them.
    pub unknown: Vec<f64>,
    /// Loads above the first that misses and that hold all the same: chance, or a server that is not the same at all times.
    pub out_of_order: Vec<f64>,
}

impl Bracket {
    /// Of a ladder, rising in load.
    pub fn of(rungs: &[Judged]) -> Bracket {
        let first = rungs.iter().position(|rung| rung.serves == Some(Answer::Misses));
        let (below, above) = rungs.split_at(first.unwrap_or(rungs.len()));
        let mut found = Bracket { misses: first.map(|at| rungs[at].load), ..Bracket::default() };
        for rung in below {
            match rung.answer() {
                None => found.unknown.push(rung.load),
                Some(Answer::Holds) => found.holds = Some(rung.load),
                Some(Answer::Undecided) => found.undecided.push(rung.load),
                Some(Answer::Misses) => found.too_dear.push(rung.load),
            }
        }
        let holds = |rung: &&Judged| rung.answer() == Some(Answer::Holds);
        found.out_of_order = above.iter().filter(holds).map(|rung| rung.load).collect();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Answer::{Holds, Misses, Undecided};

    fn priced(answers: impl IntoIterator<Item = (Option<Answer>, Option<Answer>)>) -> Bracket {
        let rung = |(n, (serves, cost))| Judged { load: (n + 1) as f64, serves, cost };
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
