//! The mean effect over the cells of a comparison: how much an arm differs on average over loads and
//! scenarios, if the true difference may vary between them.
//!
//! Random effects: each cell's change is drawn from a distribution of changes, and the mean of that
//! distribution is estimated. Every cell has the same weight, and the interval is Student's t over
//! cells. Weights by precision (DerSimonian and Laird; Hartung and Knapp) treat the variances of three
//! or five rounds as known. In simulations, their 95 % intervals covered 74 to 94 % and 86 to 95 %,
//! respectively; the intervals used here covered 94 to 99 % (`docs/METRICS.md`, Comparison).

use schemars::JsonSchema;
use serde::Serialize;

use super::quantity::Effect;
use super::{Better, CellAnswer, Found, Margin, MarginAnswer, Outcome, Quantity, Test, phrasing};
use crate::analysis::paired::{self, PairedT, moments, power};
use crate::analysis::replicates::Scale;

/// Minimum number of cells; two cells barely determine a deviation.
pub const FEWEST: usize = 3;

/// One metric of an arm compared with its baseline over all cells. It is one of the tests of its
/// declaration, like those of the cells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pooled {
    /// The arm: a value of the axis.
    pub arm: String,
    /// The metric, with its percentile: `ttft_p99`.
    pub metric: String,
    /// Unit; empty for shares, ratios and money.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Number of cells in which the metric was tested.
    pub cells: u32,
    /// `ratio`: the arm divided by the baseline. `difference`: the arm minus the baseline, in the
    /// metric's unit.
    pub of: &'static str,
    /// The mean of the cells' changes, geometric for ratios; every cell has the same weight.
    pub value: f64,
    /// Lower end of the 95 % interval of `value` (Student's t over cells), not adjusted for other tests.
    pub low: f64,
    /// Upper end of the 95 % interval of `value`.
    pub high: f64,
    /// How much the true changes of cells differ: their standard deviation beyond what the rounds
    /// explain; for a ratio, its excess over 1. 0 if the rounds explain everything.
    pub(crate) between_cells: f64,
    /// Two-sided p-value of the t test over cells.
    pub p: f64,
    /// The p-value adjusted for all tests of the family.
    pub p_adjusted: Option<f64>,
    /// The outcome: `better`, `worse`, `differs` or `not_shown`.
    pub outcome: Outcome,
    /// The effect in words.
    pub words: String,
    /// Whether the arm is shown to be worse by no more than the margin; null without a margin.
    pub margin: Option<Margin>,
    #[serde(skip)]
    pub(super) quantity: Quantity,
    #[serde(skip)]
    pub(super) t: PairedT,
}

/// Returns every combination of arm and metric that was tested in enough cells, in the order of the
/// first cell that has it.
pub fn over(cells: &[CellAnswer]) -> Vec<Pooled> {
    let mut all: Vec<(&str, Vec<&Test>)> = Vec::new();
    for cell in cells {
        // Rounds that stopped once something was shown overestimate the change on average, so they are
        // excluded from means over cells.
        let is_fixed = |test: &&Test| matches!(test.found, Found::Tested(_)) && test.sequence.is_none();
        for test in cell.tests.iter().filter(is_fixed) {
            let is_same = |(arm, tests): &&mut (&str, Vec<&Test>)| *arm == cell.arm && tests[0].metric == test.metric;
            match all.iter_mut().find(is_same) {
                Some((_, tests)) => tests.push(test),
                None => all.push((&cell.arm, vec![test])),
            }
        }
    }
    all.iter().filter_map(|(arm, tests)| Pooled::of(arm, tests)).collect()
}

/// States that an effect over cells is within the margin if each of its cells is shown to be. The mean of
/// these cells cannot exceed all of them, even if they differ too much for an interval over cells to show
/// it.
pub(super) fn follow_from_cells(pooled: &mut [Pooled], cells: &[CellAnswer]) {
    let is_within = |margin: &Option<Margin>| margin.as_ref().is_some_and(|one| one.answer == MarginAnswer::Shown);
    for one in pooled {
        let of_arm = cells.iter().filter(|cell| cell.arm == one.arm).flat_map(|cell| &cell.tests);
        let mut own = of_arm.filter(|test| test.metric == one.metric && test.p.is_some());
        let are_within = own.all(|test| is_within(&test.margin));
        if let Some(margin) = one.margin.as_mut().filter(|margin| are_within && margin.answer == MarginAnswer::NotShown)
        {
            margin.follow_from_cells(&one.quantity);
        }
    }
}

/// The mean of changes drawn from a distribution, with the uncertainty due to the limited rounds of each
/// cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RandomEffects {
    /// The mean.
    pub mean: f64,
    /// Lower end of the mean's 95 % interval.
    pub low: f64,
    /// Upper end of the mean's 95 % interval.
    pub high: f64,
    /// Standard deviation of the true changes.
    pub between: f64,
    /// The test of whether the mean is zero.
    pub t: PairedT,
}

/// Computes the mean over cells from the mean change of each cell and its variance; `None` for fewer cells
/// than [`FEWEST`], or if all changes are equal.
pub(crate) fn random_effects(cells: &[(f64, f64)]) -> Option<RandomEffects> {
    let means: Vec<f64> = cells.iter().map(|(mean, _)| *mean).collect();
    let test = paired::t_test(&means).filter(|_| means.len() >= FEWEST)?;
    let explained = cells.iter().map(|(_, variance)| variance).sum::<f64>() / cells.len() as f64;
    let (_, sd) = moments(&means)?;
    let between = (sd * sd - explained).max(0.0).sqrt();
    Some(RandomEffects { mean: test.mean, low: test.low, high: test.high, between, t: test })
}

impl Pooled {
    fn of(arm: &str, tests: &[&Test]) -> Option<Pooled> {
        let change = |test: &&Test| match &test.found {
            Found::Tested(t) => Some((t.mean, t.sd * t.sd / t.n as f64)),
            _ => None,
        };
        let effects = random_effects(&tests.iter().filter_map(change).collect::<Vec<_>>())?;
        let first = tests.first()?;
        let quantity = first.quantity;
        let leave = |value: f64| quantity.scale.leave(value);
        let between = if quantity.scale == Scale::Log { effects.between.exp_m1() } else { effects.between };
        Some(Pooled {
            arm: arm.to_owned(),
            metric: first.metric.clone(),
            unit: quantity.unit,
            better: quantity.better,
            cells: tests.len() as u32,
            of: quantity.change(),
            value: leave(effects.mean),
            low: leave(effects.low),
            high: leave(effects.high),
            between_cells: between,
            p: effects.t.p,
            p_adjusted: None,
            outcome: Outcome::NotShown,
            words: String::new(),
            margin: None,
            quantity,
            t: effects.t,
        })
    }

    /// Returns the effect and its test.
    pub(super) fn effect(&self) -> Effect {
        Effect { quantity: self.quantity, t: self.t }
    }

    /// Sets the outcome from the adjusted p-value.
    pub(super) fn settle(&mut self, p_adjusted: Option<f64>) {
        self.p_adjusted = p_adjusted;
        let is_shown = p_adjusted.is_some_and(|p| p <= power::LEVEL);
        self.outcome = Outcome::of(is_shown, self.better, self.t.mean);
        self.words = self.worded();
    }

    fn worded(&self) -> String {
        let words = match self.outcome {
            Outcome::NotShown if self.p <= power::LEVEL => "no difference shown, adjusted for other tests".to_owned(),
            Outcome::NotShown => "no difference shown".to_owned(),
            _ => phrasing::moved(&self.quantity, self.t.mean),
        };
        match self.between_cells > 0.0 {
            true => {
                let differ = phrasing::size(&self.quantity, self.between_cells, "");
                format!("{words}; cells differ by ±{differ}")
            }
            false => words,
        }
    }

    /// Whether the arm is shown to be worse than the margin.
    pub(super) fn is_beyond_margin(&self) -> bool {
        self.margin.as_ref().is_some_and(|margin| margin.answer == MarginAnswer::Worse)
    }

    /// States that the arm is worse, because it is worse than the margin.
    pub(super) fn be_worse(&mut self) {
        self.outcome = Outcome::Worse;
        self.words = self.worded();
    }
}
