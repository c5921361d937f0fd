//! Margins: is the arm not worse than the baseline by more than so much?
//!
//! A test for a difference that shows none says nothing of the arms being alike. With a margin the burden is the other way round
//! (non-inferiority): "not worse" is shown where the one-sided 95 % bound of the change lies within the margin. A gate passes where
//! that is shown of every metric, which needs no adjustment: each alone must be shown (intersection–union). That an arm is worse than
//! the margin is shown by its other bound; of several such tests any fails the gate, so these are adjusted by Holm's method.

use schemars::JsonSchema;
use serde::Serialize;

use super::reading::NOT_KNOWN;
use super::{Better, Found, SequenceLook, Test, phrasing};
use crate::analysis::metric::{self, Unit};
use crate::analysis::paired::{self, PairedT, holm::holm, power};
use crate::analysis::replicates::Scale;
use crate::analysis::student;

/// What is known of a metric and its margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarginAnswer {
    /// The arm is not worse than the baseline by more than the margin.
    Shown,
    /// The arm is worse than the baseline by more than the margin.
    Worse,
    /// Neither is shown.
    NotShown,
    /// The metric has no margin: neither of two values is better, it is counted in requests, it is a wait that may be 0, or neither
    /// arm has it although nobody asked for it.
    NotJudged,
}

/// A metric and its margin.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Margin {
    /// What is allowed: of a ratio what it is above or below 1, of a share in absolute terms (0.02: 2 points).
    pub margin: f64,
    /// How much worse the arm may be: the one-sided 95 % bound of the change, a ratio or a difference as `change` has it. Null where
    /// not tested.
    pub bound: Option<f64>,
    /// What came out.
    pub answer: MarginAnswer,
    /// How many repeats would show it in 80 % of cases, were the arm no better than the baseline and no worse than it was measured;
    /// null where it is shown, and where no 10 000 would.
    pub repeats_needed: Option<u32>,
    /// The same in words.
    pub words: String,
}

/// The level at which the two halves of a two-sided interval are the one-sided bounds of 95 %.
pub(crate) const TWO_SIDED: f64 = 2.0 * power::LEVEL;

/// A change seen from the side on which it is worse: above zero where the arm is worse.
#[derive(Debug, Clone, Copy)]
struct Worsening {
    mean: f64,
    /// Standard error of the mean.
    error: f64,
    df: f64,
    /// Of one round's difference.
    sd: f64,
    limit: f64,
    sequence: Option<SequenceLook>,
}

impl Worsening {
    fn of(test: &Test, t: &PairedT, limit: f64) -> Worsening {
        let mean = sign(test.better) * t.mean;
        let (error, df) = (t.sd / (t.n as f64).sqrt(), (t.n - 1) as f64);
        Worsening { mean, error, df, sd: t.sd, limit, sequence: test.sequence }
    }

    /// The most that the arm is worse, and the least, each at 95 %.
    fn bounds(&self) -> (f64, f64) {
        let n = self.df as usize + 1;
        let level = self.sequence.map_or(TWO_SIDED, |look| look.nominal(n, TWO_SIDED));
        let half = student::critical(level, self.df) * self.error;
        (self.mean + half, self.mean - half)
    }

    /// One-sided p-value of being worse than the margin.
    fn p_worse(&self) -> f64 {
        let t = (self.mean - self.limit) / self.error;
        let both = student::two_sided(t, self.df);
        let beyond = self.sequence.map_or(both, |look| look.p(self.df as usize + 1, both)) / 2.0;
        if t > 0.0 { beyond } else { 1.0 - beyond }
    }
}

/// Holds every test of a family against the margin. `named` are metrics that were asked for by name; `needed` says how many rounds
/// show an effect where so many measured a deviation, and at least how many are advised where there is none.
pub(super) fn settle(
    tests: &mut [&mut Test],
    margin: f64,
    named: bool,
    mut needed: impl FnMut(f64, Option<(f64, usize)>, Option<SequenceLook>) -> Option<u32>,
) {
    let tested: Vec<Option<Worsening>> = tests.iter().map(|test| tested(test, margin)).collect();
    let mut adjusted = holm(&tested.iter().flatten().map(Worsening::p_worse).collect::<Vec<_>>()).into_iter();
    for (test, worsening) in tests.iter_mut().zip(tested) {
        let is_worse = worsening.and_then(|_| adjusted.next()).is_some_and(|p| p <= power::LEVEL);
        test.margin = Some(answer(test, margin, (worsening, is_worse), named, &mut needed));
    }
}

fn tested(test: &Test, margin: f64) -> Option<Worsening> {
    let limit = limit(test, margin)?;
    match &test.found {
        Found::Tested(t) => Some(Worsening::of(test, t, limit)),
        _ => None,
    }
}

fn answer(
    test: &Test,
    margin: f64,
    (worsening, is_worse): (Option<Worsening>, bool),
    named: bool,
    needed: &mut impl FnMut(f64, Option<(f64, usize)>, Option<SequenceLook>) -> Option<u32>,
) -> Margin {
    let size = size(test, margin);
    let bare = |answer, words| Margin { margin, bound: None, answer, repeats_needed: None, words };
    let Some(limit) = limit(test, margin) else {
        return bare(MarginAnswer::NotJudged, "has no margin".to_owned());
    };
    let not_shown = format!("not worse than {size}: not shown");
    match (&test.found, worsening) {
        (Found::Nothing(why), _) if !named && why.starts_with(NOT_KNOWN) => {
            bare(MarginAnswer::NotJudged, "has no margin".to_owned())
        }
        (Found::Nothing(_), _) => bare(MarginAnswer::NotShown, not_shown),
        (Found::Same(difference), _) if sign(test.better) * difference <= limit => {
            bare(MarginAnswer::Shown, format!("not worse than {size}: shown"))
        }
        (Found::Same(_), _) => bare(MarginAnswer::Worse, format!("worse than {size}: shown")),
        (Found::Few(sd), _) => {
            let repeats = needed(limit, sd.map(|sd| (sd, 2)), test.sequence);
            let words = format!("{not_shown}{}", would_do(repeats));
            Margin { repeats_needed: repeats, ..bare(MarginAnswer::NotShown, words) }
        }
        (Found::Tested(t), worsening) => {
            let worsening = worsening.unwrap_or_else(|| Worsening::of(test, t, limit));
            let (most, least) = worsening.bounds();
            let leave = |worse: f64| test.scale.leave(sign(test.better) * worse);
            let end = |worse: f64, word: &str| {
                let word = if worse > 0.0 {
                    word
                } else if word == "most" {
                    "least"
                } else {
                    "most"
                };
                format!("{} at {word}", phrasing::moved(test, sign(test.better) * worse))
            };
            if most < limit {
                let words = format!("not worse than {size}: shown ({})", end(most, "most"));
                return Margin { bound: Some(leave(most)), ..bare(MarginAnswer::Shown, words) };
            }
            if is_worse {
                let words = format!("worse than {size}: shown ({})", end(least, "least"));
                return Margin { bound: Some(leave(most)), ..bare(MarginAnswer::Worse, words) };
            }
            // Nobody knows the true change; that the arm is better than the baseline is not taken for granted.
            let away = limit - worsening.mean.max(0.0);
            let repeats = (away > 0.0).then(|| needed(away, Some((worsening.sd, t.n)), test.sequence)).flatten();
            let words = format!("{not_shown} ({}){}", end(most, "most"), would_do(repeats));
            Margin { bound: Some(leave(most)), repeats_needed: repeats, ..bare(MarginAnswer::NotShown, words) }
        }
    }
}

fn would_do(repeats: Option<u32>) -> String {
    match repeats {
        Some(repeats) => format!("; {repeats} repeats would do"),
        None => "; more repeats would not do".to_owned(),
    }
}

/// By how much rounds may differ (one standard deviation of a round's change, of a ratio what it is above 1) for so many of them to
/// show a margin in 80 % of cases where the arms are alike; none from fewer rounds than are tested. Of a sequence, by its last look.
pub fn tolerated(margin: f64, rounds: u32, sequential: bool) -> Option<f64> {
    let last = SequenceLook { round: rounds, at_most: rounds };
    let rounds = rounds as usize;
    let level = if sequential { last.nominal(rounds, TWO_SIDED) } else { TWO_SIDED };
    (rounds >= paired::FEWEST).then(|| (margin.ln_1p() / power::detectable(rounds, level)).exp_m1())
}

/// The direction in which a metric is worse.
pub(super) fn sign(better: Better) -> f64 {
    if better == Better::Lower { 1.0 } else { -1.0 }
}

/// The margin on the metric's scale, above zero; none for a metric that has none.
pub(super) fn limit(test: &Test, margin: f64) -> Option<f64> {
    let unit = metric::find(test.name.key).map(|metric| metric.unit);
    match (test.better, test.scale) {
        (Better::Neither, _) => None,
        (Better::Lower, Scale::Log) => Some(margin.ln_1p()),
        (Better::Higher, Scale::Log) => Some(-(-margin).ln_1p()),
        (_, Scale::Plain) => (unit == Some(Unit::Share)).then_some(margin),
    }
}

/// `2 %`, `2 points`.
fn size(test: &Test, margin: f64) -> String {
    let percent = phrasing::allowed(margin);
    if test.scale == Scale::Log { percent } else { percent.replace('%', "points") }
}
