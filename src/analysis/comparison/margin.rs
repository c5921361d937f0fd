//! Margins: tests of whether an arm is no worse than the baseline by more than a given amount.
//!
//! A test that shows no difference does not show that the arms are alike. A margin reverses the burden
//! of proof (non-inferiority): "not worse" is shown if the one-sided 95 % bound of the change lies
//! within the margin. A gate passes if this is shown for every metric. No adjustment is needed, because
//! each metric must pass individually (intersection–union). The opposite bound shows that an arm is
//! worse than the margin. A single such result fails the gate, so these tests are adjusted by Holm's
//! method. Effects over all cells are tested in the same way, and are within the margin wherever each of
//! their cells is.

use schemars::JsonSchema;
use serde::Serialize;

use super::quantity::Effect;
use super::{Found, Quantity, SequenceLook, Test, phrasing};
use crate::analysis::paired::{self, PairedT, holm::holm, power};
use crate::analysis::replicates::Scale;
use crate::analysis::student;

/// The result of a margin test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarginAnswer {
    /// The arm is not worse than the baseline by more than the margin.
    Shown,
    /// The arm is worse than the baseline by more than the margin.
    Worse,
    /// It is shown neither that the arm is within the margin nor that it is worse than the margin.
    NotShown,
    /// No margin applies to the metric, because neither direction of the metric is better, because it
    /// is a number of requests or a wait that may be 0, or because neither arm has it and it was not
    /// requested by name.
    NotJudged,
}

/// A metric and its margin.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Margin {
    /// The allowed change: for a ratio, its distance from 1; for a share, the absolute difference (0.02:
    /// 2 points).
    pub margin: f64,
    /// How much worse the arm may be: the one-sided 95 % bound of the change, a ratio or a difference as
    /// in `change`. Null if not tested.
    pub bound: Option<f64>,
    /// The result.
    pub answer: MarginAnswer,
    /// How many repeats would show in 80 % of cases that the arm is within the margin, if it is no
    /// better than the baseline and no worse than measured. Null if this is already shown, or if even 10
    /// 000 repeats would not show it.
    pub repeats_needed: Option<u32>,
    /// The result in words.
    pub words: String,
}

/// The level at which both ends of a two-sided interval are one-sided 95 % bounds.
pub(crate) const TWO_SIDED: f64 = 2.0 * power::LEVEL;

/// How much worse the arm is than the baseline: a change of the metric, with a sign that is positive if the
/// arm is worse.
#[derive(Debug, Clone, Copy)]
struct Worsening {
    mean: f64,
    /// Standard error of the mean.
    error: f64,
    df: f64,
    /// Standard deviation of one round's difference.
    sd: f64,
    limit: f64,
    sequence: Option<SequenceLook>,
}

impl Worsening {
    fn of(quantity: &Quantity, t: &PairedT, sequence: Option<SequenceLook>, limit: f64) -> Worsening {
        let mean = quantity.sign() * t.mean;
        let (error, df) = (t.sd / (t.n as f64).sqrt(), (t.n - 1) as f64);
        Worsening { mean, error, df, sd: t.sd, limit, sequence }
    }

    /// Returns the upper and lower bounds on how much worse the arm is, each at 95 %.
    fn bounds(&self) -> (f64, f64) {
        let n = self.df as usize + 1;
        let level = self.sequence.map_or(TWO_SIDED, |look| look.nominal(n, TWO_SIDED));
        let half = student::critical(level, self.df) * self.error;
        (self.mean + half, self.mean - half)
    }

    /// Returns the one-sided p-value for the arm being worse than the margin.
    fn p_worse(&self) -> f64 {
        let t = (self.mean - self.limit) / self.error;
        let both = student::two_sided(t, self.df);
        let beyond = self.sequence.map_or(both, |look| look.p(self.df as usize + 1, both)) / 2.0;
        if t > 0.0 { beyond } else { 1.0 - beyond }
    }

    /// Describes a bound on how much worse the arm is: `slower by 1.1 % at most`.
    fn end(quantity: &Quantity, worse: f64, word: &str) -> String {
        let word = match (worse > 0.0, word) {
            (true, word) => word,
            (false, "most") => "least",
            (false, _) => "most",
        };
        format!("{} at {word}", phrasing::moved(quantity, quantity.sign() * worse))
    }
}

/// Tests every metric of a family against the margin, and returns the results for its effects over cells.
/// `needed` returns how many rounds show an effect, given a deviation and the number of rounds that measured
/// it; without a deviation, it returns the recommended minimum.
pub(super) fn settle(
    tests: &mut [&mut Test],
    effects: &[Effect],
    margin: f64,
    mut needed: impl FnMut(f64, Option<(f64, usize)>, Option<SequenceLook>) -> Option<u32>,
) -> Vec<Margin> {
    let of_cells: Vec<Option<Worsening>> = tests.iter().map(|test| tested(test, margin)).collect();
    let of_effect = |one: &Effect| Some(Worsening::of(&one.quantity, &one.t, None, one.quantity.limit(margin)?));
    let of_effects: Vec<Option<Worsening>> = effects.iter().map(of_effect).collect();
    let tested = of_cells.iter().chain(&of_effects).flatten();
    let mut adjusted = holm(&tested.map(Worsening::p_worse).collect::<Vec<_>>()).into_iter();
    let mut is_worse =
        |worsening: Option<Worsening>| worsening.and_then(|_| adjusted.next()).is_some_and(|p| p <= power::LEVEL);
    for (test, worsening) in tests.iter_mut().zip(of_cells) {
        let is_worse = is_worse(worsening);
        test.margin = Some(answer(test, margin, (worsening, is_worse), &mut needed));
    }
    let of_effect = |(one, worsening): (&Effect, Option<Worsening>)| {
        let is_worse = is_worse(worsening);
        answer_over_cells(&one.quantity, margin, worsening, is_worse)
    };
    effects.iter().zip(of_effects).map(of_effect).collect()
}

fn tested(test: &Test, margin: f64) -> Option<Worsening> {
    let limit = test.quantity.limit(margin)?;
    match &test.found {
        Found::Tested(t) => Some(Worsening::of(&test.quantity, t, test.sequence, limit)),
        _ => None,
    }
}

fn answer_over_cells(quantity: &Quantity, margin: f64, worsening: Option<Worsening>, is_worse: bool) -> Margin {
    let Some(worsening) = worsening else { return Margin::none(margin) };
    let size = size(quantity, margin);
    let (most, least) = worsening.bounds();
    let [at_most, at_least] = [(most, "most"), (least, "least")].map(|(end, word)| Worsening::end(quantity, end, word));
    let (answer, words) = if most < worsening.limit {
        (MarginAnswer::Shown, format!("within the margin of {size}: shown ({at_most})"))
    } else if is_worse {
        (MarginAnswer::Worse, format!("outside the margin of {size}: shown ({at_least})"))
    } else {
        (MarginAnswer::NotShown, format!("within the margin of {size}: not shown ({at_most})"))
    };
    let bound = Some(quantity.scale.leave(quantity.sign() * most));
    Margin { margin, bound, answer, repeats_needed: None, words }
}

impl Margin {
    /// Returns the result for a metric without a margin.
    fn none(margin: f64) -> Margin {
        let (answer, words) = (MarginAnswer::NotJudged, "has no margin".to_owned());
        Margin { margin, bound: None, answer, repeats_needed: None, words }
    }

    /// States that an effect over cells is within the margin, because each of its cells is.
    pub(super) fn follow_from_cells(&mut self, quantity: &Quantity) {
        self.answer = MarginAnswer::Shown;
        self.words = format!("within the margin of {}: shown in every cell", size(quantity, self.margin));
    }
}

impl Test {
    /// Whether the arm is shown to be worse than the margin.
    pub(super) fn is_beyond_margin(&self) -> bool {
        self.margin.as_ref().is_some_and(|margin| margin.answer == MarginAnswer::Worse)
    }
}

fn answer(
    test: &Test,
    margin: f64,
    (worsening, is_worse): (Option<Worsening>, bool),
    needed: &mut impl FnMut(f64, Option<(f64, usize)>, Option<SequenceLook>) -> Option<u32>,
) -> Margin {
    let quantity = &test.quantity;
    let size = size(quantity, margin);
    let bare = |answer, words| Margin { margin, bound: None, answer, repeats_needed: None, words };
    let Some(limit) = quantity.limit(margin).filter(|_| test.in_family) else { return Margin::none(margin) };
    let not_shown = format!("within the margin of {size}: not shown");
    match (&test.found, worsening) {
        (Found::Nothing(_), _) => bare(MarginAnswer::NotShown, not_shown),
        (Found::Same(difference), _) if quantity.sign() * difference <= limit => {
            bare(MarginAnswer::Shown, format!("within the margin of {size}: shown"))
        }
        (Found::Same(_), _) => bare(MarginAnswer::Worse, format!("outside the margin of {size}: shown")),
        (Found::Few(sd), _) => {
            let repeats = needed(limit, sd.map(|sd| (sd, 2)), test.sequence);
            let decide = match sd {
                Some(_) => would_do(repeats),
                None => repeats.map(|repeats| format!("; {repeats} repeats advised")).unwrap_or_default(),
            };
            let words = format!("{not_shown}{decide}");
            Margin { repeats_needed: repeats, ..bare(MarginAnswer::NotShown, words) }
        }
        (Found::Tested(t), worsening) => {
            let worsening = worsening.unwrap_or_else(|| Worsening::of(quantity, t, test.sequence, limit));
            let (most, least) = worsening.bounds();
            let leave = |worse: f64| quantity.scale.leave(quantity.sign() * worse);
            let end = |worse: f64, word: &str| Worsening::end(quantity, worse, word);
            if most < limit {
                let words = format!("within the margin of {size}: shown ({})", end(most, "most"));
                return Margin { bound: Some(leave(most)), ..bare(MarginAnswer::Shown, words) };
            }
            if is_worse {
                let words = format!("outside the margin of {size}: shown ({})", end(least, "least"));
                return Margin { bound: Some(leave(most)), ..bare(MarginAnswer::Worse, words) };
            }
            // The true change is unknown, so the arm is not assumed to be better than the baseline.
            let away = limit - worsening.mean.max(0.0);
            let repeats = (away > 0.0).then(|| needed(away, Some((worsening.sd, t.n)), test.sequence)).flatten();
            let words = format!("{not_shown} ({}){}", end(most, "most"), would_do(repeats));
            Margin { bound: Some(leave(most)), repeats_needed: repeats, ..bare(MarginAnswer::NotShown, words) }
        }
    }
}

fn would_do(repeats: Option<u32>) -> String {
    match repeats {
        Some(repeats) => format!("; {repeats} repeats would suffice"),
        None => "; more repeats would not help".to_owned(),
    }
}

/// Returns the largest variation between rounds with which this many rounds show in 80 % of cases that an arm
/// is within the margin, if the arms are alike. The variation is given as one standard deviation of a round's
/// change; for a ratio, as its excess over 1. `None` if there are too few rounds for a test. In a sequence,
/// the result applies to the last look.
pub fn tolerated(margin: f64, rounds: u32, sequential: bool) -> Option<f64> {
    let last = SequenceLook { round: rounds, at_most: rounds };
    let rounds = rounds as usize;
    let level = if sequential { last.nominal(rounds, TWO_SIDED) } else { TWO_SIDED };
    (rounds >= paired::FEWEST).then(|| (margin.ln_1p() / power::detectable(rounds, level)).exp_m1())
}

/// Formats the margin of a metric: `2 %`, or `2 points` for a share.
fn size(quantity: &Quantity, margin: f64) -> String {
    let percent = phrasing::allowed(margin);
    if quantity.scale == Scale::Log { percent } else { percent.replace('%', "points") }
}
