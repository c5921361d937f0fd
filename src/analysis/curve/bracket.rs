//! Between which two loads of a ladder the highest one lies that meets an objective. Nothing is extrapolated: what lies
//! above the last rung, or below the first, was not measured.

use crate::analysis::slo::Answer;

/// One rung of a ladder and what it says of the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The load.
    pub load: f64,
    /// Whether the objective holds there.
    pub answer: Answer,
}

/// Between which loads the highest one lies that meets the objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Bracket {
    /// The highest load that holds below the first that misses; none where no such rung holds. A rung that is undecided below it
    /// takes nothing from it: light loads are the ones with the fewest requests.
    pub holds: Option<f64>,
    /// The lowest load that misses; none where no rung does.
    pub misses: Option<f64>,
    /// Loads below the first that misses that are undecided, rising: more requests would decide them.
    pub undecided: Vec<f64>,
    /// Loads above the first that misses and that hold all the same: chance, or a server that is not the same at all times.
    pub out_of_order: Vec<f64>,
}

impl Bracket {
    /// Of a ladder, rising in load.
    pub fn of(rungs: &[Judged]) -> Bracket {
        let is = |answer: Answer| move |rung: &&Judged| rung.answer == answer;
        let misses = rungs.iter().find(is(Answer::Misses)).map(|rung| rung.load);
        let below = |rung: &&Judged| misses.is_none_or(|first| rung.load < first);
        let undecided = rungs.iter().filter(is(Answer::Undecided)).filter(below).map(|rung| rung.load);
        let (holding, out_of_order): (Vec<&Judged>, Vec<&Judged>) =
            rungs.iter().filter(is(Answer::Holds)).partition(|rung| below(&rung));
        Bracket {
            holds: holding.last().map(|rung| rung.load),
            misses,
            undecided: undecided.collect(),
            out_of_order: out_of_order.iter().map(|rung| rung.load).collect(),
        }
    }
}

/// What the runs of one rung say together: it holds where all hold, misses where one misses, and is else undecided.
/// Repeats of a load that is near its limit fall on both sides; such a load is not one to promise.
pub fn together(answers: impl Iterator<Item = Answer>) -> Answer {
    let mut all = None;
    for answer in answers {
        all = Some(match (all, answer) {
            (_, Answer::Misses) | (Some(Answer::Misses), _) => Answer::Misses,
            (None | Some(Answer::Holds), Answer::Holds) => Answer::Holds,
            _ => Answer::Undecided,
        });
    }
    all.unwrap_or(Answer::Undecided)
}

#[cfg(test)]
mod tests {
    use super::*;

    use Answer::{Holds, Misses, Undecided};

    fn bracket(answers: &[Answer]) -> Bracket {
        let rungs: Vec<Judged> =
            answers.iter().enumerate().map(|(n, answer)| Judged { load: (n + 1) as f64, answer: *answer }).collect();
        Bracket::of(&rungs)
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
        assert_eq!(bracket(&[]), Bracket { holds: None, misses: None, undecided: vec![], out_of_order: vec![] });
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
    fn repeats_hold_only_together() {
        assert_eq!(together([Holds, Holds].into_iter()), Holds);
        assert_eq!(together([Holds, Undecided].into_iter()), Undecided);
        assert_eq!(together([Undecided, Holds].into_iter()), Undecided);
        assert_eq!(together([Undecided, Misses, Holds].into_iter()), Misses);
        assert_eq!(together([].into_iter()), Undecided);
    }
}
