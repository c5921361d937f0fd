//! Compares two arms by a metric: whether one is better, by how much, and which difference would have
//! been detected. The code is pure; another module decides which runs are paired.
//!
//! The test is a paired t over rounds (`analysis::paired`), on logarithms if the metric is compared as a
//! ratio. All tests of one declaration, including the effects over all of its cells, form one family:
//! Holm's method keeps the chance of any false finding among them at 5 %. Failed requests are not part of
//! the family, because they are a guardrail of every comparison. What is said about an arm follows from
//! all of its tests (`claim`).

mod claim;
pub mod errors;
mod family;
mod gate;
pub mod guardrail;
mod launches;
mod margin;
mod phrasing;
pub mod pooled;
mod quantity;
mod reading;
mod sequence;
mod undecided;

#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod error_tests;
#[cfg(test)]
mod margin_tests;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

pub use claim::{Claim, Conclusion, ERRORS, Shown, Unproven};
pub use family::{ADVISED, Adjusted, Declaration, Rules, settle};
pub use gate::{Gate, Missed};
pub use guardrail::Guardrail;
pub use launches::Launches;
pub(crate) use margin::Margin;
pub use margin::{MarginAnswer, tolerated};
pub use phrasing::{allowed, percent};
pub use pooled::Pooled;
pub(crate) use quantity::Quantity;
pub use reading::{Better, RunValue, all_names, expand, read, read_class};
pub use sequence::SequenceLook;
pub use undecided::undecided;

use std::collections::BTreeMap;

use super::metric;
use super::paired::{self, PairedT, bootstrap, wilcoxon};
use super::replicates::{Ends, OverRuns, Scale};
use super::sequential;
use crate::plan::MetricName;

/// The outcome for one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The arm is better than the baseline.
    Better,
    /// The arm is worse than the baseline: a regression.
    Worse,
    /// The arms differ in a metric for which neither direction is better.
    Differs,
    /// No difference was shown; `detectable` is the smallest difference that would have been shown.
    NotShown,
    /// Every repeat gave the same difference, so there is no random variation to test against.
    Constant,
    /// Too few repeats; `repeats_needed` would suffice.
    Refused,
    /// There are no values to compare; `words` contains the reason.
    Unknown,
}

impl Outcome {
    /// Returns the outcome of a test by its mean difference on the metric's scale.
    fn of(is_shown: bool, better: Better, mean: f64) -> Outcome {
        match (is_shown, better) {
            (false, _) => Outcome::NotShown,
            (true, Better::Neither) => Outcome::Differs,
            (true, better) if (mean < 0.0) == (better == Better::Lower) => Outcome::Better,
            (true, _) => Outcome::Worse,
        }
    }
}

/// The number of rounds in which the arm's value is higher than, lower than or equal to the baseline's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Observed {
    /// Rounds in which the arm's value is higher.
    pub higher: u32,
    /// Rounds in which the arm's value is lower.
    pub lower: u32,
    /// Rounds in which both values are equal.
    pub equal: u32,
}

impl Observed {
    fn of(differences: &[f64]) -> Observed {
        let count = |is: fn(f64) -> bool| differences.iter().filter(|one| is(**one)).count() as u32;
        Observed { higher: count(|one| one > 0.0), lower: count(|one| one < 0.0), equal: count(|one| one == 0.0) }
    }
}

/// A mean over the runs of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Mean {
    /// The mean over runs, in the metric's unit; a geometric mean if `kind` names a log scale.
    pub value: f64,
    /// Lower end of the mean's 95 % interval; null for one run, and if the rounds may have stopped
    /// early because of their results.
    pub low: Option<f64>,
    /// Upper end of the mean's 95 % interval; null if `low` is null.
    pub high: Option<f64>,
    /// The basis of the interval; null if there is none.
    pub kind: Option<&'static str>,
    /// Whether this is the mean of a percentile that is computed from few samples in any of the runs
    /// (p99: fewer than 1 000 values; p99.9: fewer than 100 000).
    pub few_samples: bool,
}

/// The arm compared with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// `ratio`: the arm divided by the baseline. `difference`: the arm minus the baseline, in the
    /// metric's unit.
    pub of: &'static str,
    /// The geometric mean of the rounds' ratios, or the mean of their differences.
    pub value: f64,
    /// Lower end of the change's 95 % interval, not adjusted for other tests. In a sequence, it holds
    /// at every look.
    pub low: f64,
    /// Upper end of the change's 95 % interval, not adjusted for other tests. In a sequence, it holds
    /// at every look.
    pub high: f64,
    /// Lower end of the change's 95 % interval by a studentized bootstrap over rounds; null below 8 rounds,
    /// and in a sequence.
    pub(crate) bootstrap_low: Option<f64>,
    /// Upper end of the change's 95 % interval by a studentized bootstrap over rounds; null if
    /// `bootstrap_low` is null.
    pub(crate) bootstrap_high: Option<f64>,
}

/// One metric compared between two arms.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Test {
    /// The metric, with its percentile: `ttft_p99`.
    pub metric: String,
    /// Unit; empty for shares, ratios and money.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Whether the test is one of the declaration's tests. It is not if neither arm can have the metric
    /// and the metric was not requested by name: a response that is not streamed has no TPOT.
    pub in_family: bool,
    /// Number of rounds: repeats in which both arms have a value.
    pub rounds: u32,
    /// In how many of the rounds the arm's value is higher or lower than the baseline's.
    pub observed: Observed,
    /// The baseline over all rounds that were measured on both arms; null if the baseline has no value
    /// in one of these rounds.
    pub baseline: Option<Mean>,
    /// The arm over all rounds that were measured on both arms; null if the arm has no value in one of
    /// these rounds.
    pub arm: Option<Mean>,
    /// The arm compared with the baseline; null if not tested.
    pub change: Option<Change>,
    /// Two-sided p-value of the paired t test; in a sequence, over all looks of the sequence. Null if not
    /// tested.
    pub p: Option<f64>,
    /// The p-value adjusted for all tests of the family by the method in the comparison's `adjusted_by`.
    pub p_adjusted: Option<f64>,
    /// Two-sided p-value of Wilcoxon's signed-rank test; null below 6 rounds that differ, and in a
    /// sequence.
    pub p_wilcoxon: Option<f64>,
    /// The smallest difference that this many rounds would show in 80 % of cases, given the number of
    /// tests. For a ratio, its excess over 1 (0.05: 5 %); otherwise, in the metric's unit. Null if not
    /// tested.
    pub detectable: Option<f64>,
    /// How many repeats would show a difference of the requested size; null if the existing repeats suffice,
    /// or if no number of repeats would suffice.
    pub repeats_needed: Option<u32>,
    /// The outcome.
    pub outcome: Outcome,
    /// The outcome in words.
    pub words: String,
    /// Whether the arm is shown to be worse by no more than the margin; null without a margin.
    pub margin: Option<Margin>,
    /// The look of a group-sequential comparison at which the test is judged; null if the number of
    /// rounds was fixed in advance.
    pub sequence: Option<SequenceLook>,
    #[serde(skip)]
    quantity: Quantity,
    #[serde(skip)]
    found: Found,
    /// Whether an arm has a value in any round, or could have one.
    #[serde(skip)]
    may_exist: bool,
    /// Whether any round was measured on both arms.
    #[serde(skip)]
    has_rounds: bool,
}

/// The result of the rounds, before the other tests of the family are considered.
#[derive(Debug, Clone, PartialEq)]
enum Found {
    /// The result of the paired t test.
    Tested(PairedT),
    /// The same difference in every round, on the metric's scale.
    Same(f64),
    /// Too few rounds; contains the deviation of the differences if there are two rounds.
    Few(Option<f64>),
    /// No values, for this reason.
    Nothing(String),
}

/// A cell whose two arms are compared.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CellAnswer {
    /// The sweep of the cell.
    pub sweep: String,
    /// The values of the axes on which both arms agree, by axis.
    pub cell: Map<String, Value>,
    /// The cell's readable name.
    pub name: String,
    /// The arm that is compared with the baseline: a value of the axis.
    pub arm: String,
    /// Runs that were excluded, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Notes on how to read the numbers of the arm and its baseline.
    pub notes: Vec<String>,
    /// The launches of the servers on which the rounds were measured.
    pub launches: Launches,
    /// Whether the arm fails more requests, regardless of the compared metrics.
    pub guardrail: Guardrail,
    /// The tests, one for each metric.
    pub tests: Vec<Test>,
}

/// A run that was not compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The run's arm.
    pub arm: String,
    /// Index of the run among the repeats of its cell, from 0.
    pub repeat: u32,
    /// The reason.
    pub reason: String,
}

/// All tests of one declaration.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Family {
    /// The axis that is compared; `time` for a comparison with earlier results.
    pub by: String,
    /// The axis value with which all other values are compared; for a comparison with earlier results, the
    /// location of these results.
    pub baseline: String,
    /// Number of tests with a p-value, including effects over all cells; p-values are adjusted for all of them.
    /// Tests that could not be made, or found equal values in every repeat, have none.
    pub tests: u32,
    /// How much worse an arm may be (0.02: 2 %, or 2 percentage points for a share); null without a
    /// margin.
    pub margin: Option<f64>,
    /// Notes on how to read the numbers of all cells.
    pub notes: Vec<String>,
    /// The cells, by sweep and in the order of the plan.
    pub cells: Vec<CellAnswer>,
    /// Mean effects over all cells, one for each arm and metric that was tested in three or more cells.
    pub pooled: Vec<Pooled>,
    /// What is claimed about each arm, in the order of the cells. Headline, gate and pages follow from it.
    pub claims: Vec<Claim>,
}

impl Family {
    /// Returns the number of tests, including effects over all cells, whether or not they could be made.
    pub fn members(&self) -> u32 {
        self.claims.iter().map(|claim| claim.tests).sum()
    }

    /// Whether no test could be made. A test that finds equal values in every repeat has no p-value, but is made.
    pub fn is_untested(&self) -> bool {
        let is_constant = |test: &Test| test.in_family && test.outcome == Outcome::Constant;
        self.tests == 0 && !self.cells.iter().flat_map(|cell| &cell.tests).any(is_constant)
    }
}

/// The output of `compare --format json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Comparison {
    /// The plan's name.
    pub plan: String,
    /// Conclusions: one sentence for each arm (only the first arms if there are many). Each sentence
    /// claims only what was shown.
    pub answers: Vec<String>,
    /// The class of a mix to which the comparison is restricted; null for all requests.
    pub class: Option<String>,
    /// The size of the difference that the recommended number of repeats should show; for a ratio, its
    /// excess over 1.
    pub see: f64,
    /// How p-values are adjusted within a declaration.
    pub adjusted_by: Adjusted,
    /// Number of tests in which an arm is worse than its baseline, including effects over all cells.
    pub regressions: u32,
    /// Number of cells in which an arm fails more requests than its baseline.
    pub worse_errors: u32,
    /// The gate's verdict.
    pub gate: Gate,
    /// The declarations.
    pub families: Vec<Family>,
}

/// The values of one metric on both arms, by repeat.
#[derive(Debug, Clone, Default)]
pub struct Sides<'a> {
    /// The values of the baseline.
    pub baseline: BTreeMap<u32, &'a RunValue>,
    /// The values of the arm.
    pub arm: BTreeMap<u32, &'a RunValue>,
}

impl Test {
    /// Compares one metric of two arms, not yet adjusted for other tests. [`settle`] sets the outcome.
    pub fn new(name: MetricName, sides: &Sides) -> Test {
        Test::of(name, sides, None)
    }

    /// Compares one metric for rounds that may stop as soon as something is shown, after at most this
    /// many. The p-value and the intervals hold at every look.
    pub fn in_sequence(name: MetricName, sides: &Sides, at_most: u32) -> Test {
        Test::of(name, sides, Some(at_most))
    }

    fn of(name: MetricName, sides: &Sides, at_most: Option<u32>) -> Test {
        let metric = metric::find(name.key).expect("metric names are those of the table");
        let quantity = Quantity::of(name, metric);
        let scale = quantity.scale;
        let pairs = Pairs::of(sides, scale);
        let found = pairs.found(at_most);
        let test = match &found {
            Found::Tested(test) => Some(*test),
            _ => None,
        };
        let is_fixed = at_most.is_none();
        let spread = test.filter(|_| is_fixed).and_then(|_| bootstrap::interval(&pairs.differences));
        let mean = |at: usize| {
            let values = &pairs.values[at];
            let is_whole = !values.is_empty() && values.len() == pairs.rounds;
            is_whole.then(|| Mean::of(&OverRuns::of(metric, values), pairs.few[at], is_fixed)).flatten()
        };
        let ratio = scale == Scale::Log;
        Test {
            metric: name.to_string(),
            unit: quantity.unit,
            better: quantity.better,
            in_family: true,
            rounds: pairs.differences.len() as u32,
            observed: Observed::of(&pairs.differences),
            baseline: mean(0),
            arm: mean(1),
            change: test.map(|test| Change {
                of: if ratio { "ratio" } else { "difference" },
                value: scale.leave(test.mean),
                low: scale.leave(test.low),
                high: scale.leave(test.high),
                bootstrap_low: spread.map(|(low, _)| scale.leave(low)),
                bootstrap_high: spread.map(|(_, high)| scale.leave(high)),
            }),
            p: test.map(|test| test.p),
            p_adjusted: None,
            p_wilcoxon: test
                .filter(|_| is_fixed)
                .and_then(|_| wilcoxon::signed_rank(&pairs.differences))
                .map(|test| test.p),
            detectable: None,
            repeats_needed: None,
            outcome: Outcome::Unknown,
            words: String::new(),
            margin: None,
            sequence: at_most.map(|at_most| SequenceLook { round: pairs.differences.len() as u32, at_most }),
            quantity,
            found,
            may_exist: pairs.rounds == 0 || pairs.may_exist,
            has_rounds: pairs.rounds > 0,
        }
    }
}

impl Mean {
    fn of(runs: &OverRuns, few_samples: bool, has_interval: bool) -> Option<Mean> {
        let ends = runs.ends.filter(|_| has_interval);
        let end = |of: fn(&Ends) -> f64| ends.as_ref().map(of);
        Some(Mean {
            value: runs.mean?,
            low: end(|ends| ends.low),
            high: end(|ends| ends.high),
            kind: ends.map(|ends| ends.kind.name()),
            few_samples,
        })
    }
}

/// The rounds that were measured on both arms.
struct Pairs {
    /// Number of rounds.
    rounds: usize,
    /// The values of each arm, whether or not the other arm has one.
    values: [Vec<f64>; 2],
    /// Whether any value of an arm is a percentile computed from few samples.
    few: [bool; 2],
    /// Differences on the metric's scale, for rounds in which both arms have a value.
    differences: Vec<f64>,
    /// How many other rounds lack a value, and the first reason. The metric is not tested on the
    /// remaining rounds, because a slow run has fewer requests, so the remaining rounds would favor the
    /// slower arm.
    missing: Option<(usize, String)>,
    /// Number of rounds in which a value lies among failures. Excluding these rounds would favor the arm
    /// whose requests fail.
    failed: usize,
    /// Whether a run has a value, or lacks it for another reason than that it could never have one.
    may_exist: bool,
}

impl Pairs {
    fn of(sides: &Sides, scale: Scale) -> Pairs {
        let mut pairs = Pairs {
            rounds: 0,
            values: Default::default(),
            few: [false; 2],
            differences: Vec::new(),
            missing: None,
            failed: 0,
            may_exist: false,
        };
        for (repeat, baseline) in &sides.baseline {
            let Some(arm) = sides.arm.get(repeat) else { continue };
            pairs.take(baseline, arm, scale);
        }
        pairs
    }

    fn take(&mut self, baseline: &RunValue, arm: &RunValue, scale: Scale) {
        self.rounds += 1;
        for (side, reading) in [baseline, arm].into_iter().enumerate() {
            self.values[side].extend(reading.number());
            self.few[side] |= matches!(reading, RunValue::Few(_));
            self.may_exist |= !reading.is_impossible();
        }
        if let Some((a, b)) = baseline.number().zip(arm.number()) {
            let Some((from, to)) = scale.enter(a).zip(scale.enter(b)) else {
                return self.lacks("a value of 0 has no ratio");
            };
            return self.differences.push(to - from);
        }
        match (baseline, arm) {
            (RunValue::Failed, _) | (_, RunValue::Failed) => self.failed += 1,
            (RunValue::Missing(why), _) | (_, RunValue::Missing(why)) => self.lacks(why),
            _ => {}
        }
    }

    fn lacks(&mut self, why: &str) {
        self.missing.get_or_insert_with(|| (0, why.to_owned())).0 += 1;
    }

    fn t_test(&self, at_most: Option<u32>) -> Option<PairedT> {
        match at_most {
            Some(at_most) => sequential::t_test(&self.differences, at_most),
            None => paired::t_test(&self.differences),
        }
    }

    fn found(&self, at_most: Option<u32>) -> Found {
        let n = self.differences.len();
        let deviation = paired::moments(&self.differences).map(|(_, sd)| sd);
        match (self.failed, n, &self.missing) {
            (1.., _, _) => {
                let of = n + self.failed;
                Found::Nothing(format!("the value lies among failures in {} of {of} rounds", self.failed))
            }
            (0, 0, Some((_, why))) => Found::Nothing(why.clone()),
            (0, _, Some((count, why))) => Found::Nothing(format!("{why}, in {count} of {} rounds", n + count)),
            (0, 0, None) => Found::Nothing("no repeat was measured on both arms".to_owned()),
            _ if n < paired::FEWEST => Found::Few(deviation),
            _ => match self.t_test(at_most) {
                Some(test) => Found::Tested(test),
                None => Found::Same(self.differences[0]),
            },
        }
    }
}
