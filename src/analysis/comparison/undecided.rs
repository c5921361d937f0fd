//! Finds the metrics of a cell that more rounds may still decide, for cells whose rounds may stop
//! early.
//!
//! The test uses the level divided by the number of tests of the declaration. A result shown at that
//! level is also shown by Holm's method, whatever the results of the other cells. Stopping therefore
//! depends only on the cell's own rounds.

use super::margin::TWO_SIDED;
use super::{Found, Test};
use crate::analysis::paired::{PairedT, power};
use crate::analysis::student;

/// Returns the metrics of a cell, tested in sequence, that more rounds may still decide; empty if the
/// cell may stop. `of` is the number of tests of the declaration: metrics × arms × cells. Without a
/// margin, a metric is decided if a difference is shown. With a margin, it is decided if it is also
/// shown whether the arm is worse than the margin, or if the arms are shown to differ by less than the
/// margin in both directions. A metric also counts as decided if more rounds cannot help, because a
/// round has no value or all rounds are complete.
pub fn undecided(tests: &[Test], of: u32, margin: Option<f64>) -> Vec<&str> {
    let level = power::LEVEL / f64::from(of.max(1));
    tests.iter().filter(|test| test.is_open(level, margin)).map(|test| &*test.metric).collect()
}

impl Test {
    fn is_open(&self, level: f64, margin: Option<f64>) -> bool {
        if self.sequence.is_some_and(|look| look.round >= look.at_most) {
            return false;
        }
        match &self.found {
            Found::Nothing(_) => !self.has_rounds,
            Found::Few(_) => true,
            Found::Same(_) => false,
            Found::Tested(t) => match margin.and_then(|margin| self.quantity.limit(margin)) {
                Some(limit) => self.is_margin_open(t, level, limit),
                None => t.p > level,
            },
        }
    }

    fn is_margin_open(&self, t: &PairedT, level: f64, limit: f64) -> bool {
        let (error, df) = (t.sd / (t.n as f64).sqrt(), (t.n - 1) as f64);
        let half = |level: f64| {
            let level = self.sequence.map_or(level, |look| look.nominal(t.n, level));
            student::critical(level, df) * error
        };
        let worsening = self.quantity.sign() * t.mean;
        let is_not_worse = worsening + half(TWO_SIDED) < limit;
        let is_not_better = worsening - half(TWO_SIDED) > -limit;
        let is_worse = worsening - half(2.0 * level) > limit;
        let is_different = t.p <= level;
        !((is_not_worse && is_not_better) || (is_different && (is_not_worse || is_worse)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Outcome, Rules, RunValue, SequenceLook, Sides, settle};
    use super::*;

    /// Returns a metric over at most 12 rounds in which the arm is the baseline multiplied by each of
    /// these factors.
    fn test(metric: &str, times: &[f64]) -> Test {
        let side =
            |of: &dyn Fn(f64) -> f64| -> Vec<RunValue> { times.iter().map(|one| RunValue::Known(of(*one))).collect() };
        of_sides(metric, &side(&|_| 20.0), &side(&|times| 20.0 * times))
    }

    fn of_sides(metric: &str, baseline: &[RunValue], arm: &[RunValue]) -> Test {
        fn numbered(side: &[RunValue]) -> BTreeMap<u32, &RunValue> {
            (0..).zip(side).collect()
        }
        let sides = Sides { baseline: numbered(baseline), arm: numbered(arm) };
        Test::in_sequence(metric.parse().expect("a metric"), &sides, 12)
    }

    const SLOW: [f64; 6] = [1.10, 1.101, 1.099, 1.1005, 1.0995, 1.1002];
    const ALIKE: [f64; 6] = [1.001, 0.999, 1.0005, 0.9995, 1.0002, 1.0];
    const NOISE: [f64; 6] = [1.1, 0.93, 1.02, 0.97, 1.04, 0.99];

    #[test]
    fn a_cell_is_open_until_each_metric_is_decided() {
        let open = |tests: &[Test], margin| undecided(tests, tests.len() as u32, margin).len();
        let of = |times: &[f64]| test("ttft_p50", times);
        assert_eq!(open(&[of(&SLOW)], None), 0);
        assert_eq!(open(&[of(&SLOW[..2])], None), 1, "two rounds are not enough for a test");
        assert_eq!(open(&[of(&ALIKE)], None), 1, "without a margin, nothing shows that arms are alike");
        assert_eq!(open(&[of(&ALIKE)], Some(0.02)), 0);
        assert_eq!(open(&[of(&SLOW)], Some(0.02)), 0, "worse than the margin");
        assert_eq!(open(&[of(&NOISE)], Some(0.02)), 1);
        let tests = [of(&SLOW), test("tpot_p50", &NOISE), test("e2e_p50", &ALIKE)];
        assert_eq!(undecided(&tests, 3, Some(0.02)), ["tpot_p50"]);
        // The arms differ, but the difference is neither shown to be worse than the margin nor within
        // it, so the gate would be undecided.
        let between = SLOW.map(|one| 1.02 + (one - 1.1) * 2.0);
        assert_eq!((open(&[of(&between)], None), open(&[of(&between)], Some(0.02))), (0, 1));
    }

    #[test]
    fn what_more_rounds_cannot_tell_is_decided() {
        let known = |count: usize| vec![RunValue::Known(20.0); count];
        let lacks = [&known(3)[..], &[RunValue::Failed]].concat();
        let failing = of_sides("ttft_p50", &known(4), &lacks);
        let equal = of_sides("ttft_p50", &known(3), &known(3));
        assert!(undecided(&[failing, equal], 2, None).is_empty());
        let all: Vec<f64> = NOISE.iter().chain(&NOISE).copied().collect();
        assert!(undecided(&[test("ttft_p50", &all)], 1, None).is_empty(), "all rounds are complete");
        assert_eq!(undecided(&[of_sides("ttft_p50", &[], &[])], 1, None).len(), 1, "nothing is measured yet");
    }

    #[test]
    fn a_declaration_of_more_tests_asks_for_more() {
        let some = test("ttft_p50", &[1.05, 1.054, 1.043, 1.057, 1.045, 1.051]);
        let at = |of: u32| undecided(std::slice::from_ref(&some), of, None).len();
        assert_eq!((at(1), at(1_000_000)), (0, 1));
    }

    #[test]
    fn a_test_of_a_sequence_gives_nothing_of_a_fixed_number_of_rounds() {
        let times: Vec<f64> = NOISE.iter().chain(&SLOW).map(|one| one * 1.03).collect();
        let mut test = test("ttft_p50", &times[..9]);
        settle(&mut [&mut test], &Rules { margin: Some(0.02), ..Rules::seeing(0.05) });
        assert_eq!(test.sequence, Some(SequenceLook { round: 9, at_most: 12 }));
        assert_eq!(test.sequence.expect("a look").words(), "group-sequential, look 9 of 12");
        let change = test.change.as_ref().expect("a test");
        assert_eq!((test.p_wilcoxon, change.bootstrap_low, change.bootstrap_high), (None, None, None));
        let arm = test.arm.as_ref().expect("a mean");
        assert_eq!((arm.low, arm.high, arm.kind), (None, None, None));
        // The plain test of the same rounds claims more than is valid for a sequence that could have
        // stopped there.
        let plain = paired_of(&times[..9]);
        assert!(test.p > Some(plain.p) && change.low < plain.low.exp() && change.high > plain.high.exp());
        assert_eq!(test.outcome, Outcome::NotShown);
        assert!(test.words.contains("no difference shown"), "{}", test.words);
    }

    fn paired_of(times: &[f64]) -> PairedT {
        let differences: Vec<f64> = times.iter().map(|one| one.ln()).collect();
        crate::analysis::paired::t_test(&differences).expect("a test")
    }
}
