//! What is claimed about an arm, from all of its tests: the tests of its cells, the effects over these
//! cells, and its failed requests. Headline, gate, exit code and pages follow from the claim, so none of
//! them contradicts a table.
//!
//! A worsening that is shown anywhere is claimed, whatever the other tests show. That nothing is worse, or
//! that everything is within the margin, is claimed only if every test says so.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::{CellAnswer, Found, Guardrail, Margin, MarginAnswer, Observed, Outcome, Pooled, Quantity, Test, phrasing};

/// The conclusion about an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// A metric is shown to be worse, by more than the margin if the metric has one, or more requests fail.
    Worse,
    /// Nothing of the kind is shown, but a test could not be made, or does not show that the arm is within
    /// the margin.
    Undecided,
    /// Every test that has a margin shows that the arm is within it.
    WithinMargin,
    /// Every test was made; the arm is better in a metric, or fewer of its requests fail.
    Better,
    /// Every test was made; the arm differs in a metric for which neither direction is better.
    Differs,
    /// Every test was made, and none shows a difference.
    NoDifferenceShown,
}

/// A difference that a test shows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Shown {
    /// The metric, with its percentile, or `errors` for the share of failed requests.
    pub metric: String,
    /// The sweep of the cell; null for an effect over all cells.
    pub sweep: Option<String>,
    /// The cell's readable name; null for an effect over all cells.
    pub cell: Option<String>,
    /// `ratio`: the arm divided by the baseline. `difference`: the arm minus the baseline.
    pub of: &'static str,
    /// The change.
    pub change: f64,
    /// The change in words: `slower by 3.1 %`.
    pub words: String,
    /// The result for the margin; null if there is none.
    pub margin: Option<MarginAnswer>,
    /// The result for the margin in words.
    #[serde(skip)]
    pub(super) margin_words: Option<String>,
    /// By how much the arm differs, for the order of the list.
    #[serde(skip)]
    size: f64,
}

/// What was observed in rounds that are too few for a test.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Unproven {
    /// The metric, with its percentile.
    pub metric: String,
    /// The observation in words: `slower in 2 of 2 repeats`, or `slower in 4 of 4 rounds of 2 cells` over
    /// several cells, each of which has a round for each of its repeats.
    pub words: String,
}

/// What is claimed about an arm.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// The arm: a value of the axis.
    pub arm: String,
    /// The conclusion from all tests.
    pub conclusion: Conclusion,
    /// Whether the conclusion is one about the launches of the servers that were measured, and not about launches in
    /// general, because in a cell not every round has launches of its own.
    pub of_these_launches: bool,
    /// The tests that show the arm to be worse: failed requests first, then the largest difference. With a
    /// margin, some of them may lie within it.
    pub worse: Vec<Shown>,
    /// The tests that show the arm to be better, in the same order.
    pub better: Vec<Shown>,
    /// The tests that show a difference in a metric for which neither direction is better.
    pub differs: Vec<Shown>,
    /// Number of tests of the arm, including effects over all cells and without the guardrail.
    pub tests: u32,
    /// How many of the tests could not be made, or do not show that the arm is within the margin.
    pub undecided: u32,
    /// How many of the tests have a margin.
    pub with_margin: u32,
    /// How many of the tests found equal values in every repeat.
    pub equal: u32,
    /// What was observed, but not tested, because there are too few rounds: differences in the same
    /// direction in every round.
    pub unproven: Vec<Unproven>,
}

impl Claim {
    /// Returns what the conclusion is limited to, for the end of a phrase; empty if it is not limited.
    pub fn scope(&self) -> &'static str {
        if self.of_these_launches { ", in these launches" } else { "" }
    }
}

/// Name of failed requests in a list of differences.
pub const ERRORS: &str = "errors";

/// Returns what is claimed about each arm, in the order of the cells.
pub(super) fn claims(cells: &[CellAnswer], pooled: &[Pooled]) -> Vec<Claim> {
    let mut arms: IndexMap<&str, Vec<&CellAnswer>> = IndexMap::new();
    cells.iter().for_each(|cell| arms.entry(&cell.arm).or_default().push(cell));
    arms.into_iter().map(|(arm, cells)| claim(arm, &cells, pooled)).collect()
}

fn claim(arm: &str, cells: &[&CellAnswer], pooled: &[Pooled]) -> Claim {
    let members = members(arm, cells, pooled);
    let guardrails: Vec<(&CellAnswer, Outcome)> = cells.iter().map(|cell| (*cell, cell.guardrail.outcome)).collect();
    let shown = |wanted: Outcome| {
        let of_errors = guardrails.iter().filter(|(_, outcome)| *outcome == wanted).map(|(cell, _)| failing(cell));
        let of_members = members.iter().filter(|member| member.direction() == Some(wanted)).map(Member::shown);
        let mut all: Vec<Shown> = of_errors.chain(of_members).collect();
        all.sort_by(|a, b| b.size.total_cmp(&a.size));
        all
    };
    let count = |is: fn(&Member) -> bool| members.iter().filter(|member| is(member)).count() as u32;
    let is_failing = guardrails.iter().any(|(_, outcome)| *outcome == Outcome::Worse);
    let mut claim = Claim {
        arm: arm.to_owned(),
        conclusion: Conclusion::NoDifferenceShown,
        of_these_launches: cells.iter().any(|cell| cell.launches.limit_the_claim()),
        worse: shown(Outcome::Worse),
        better: shown(Outcome::Better),
        differs: shown(Outcome::Differs),
        tests: members.len() as u32,
        undecided: count(|member| member.is_open()),
        with_margin: count(|member| member.judged().is_some()),
        equal: count(|member| member.is_equal()),
        unproven: unproven(cells),
    };
    claim.conclusion = match () {
        () if is_failing || members.iter().any(Member::is_against) => Conclusion::Worse,
        () if members.is_empty() || claim.undecided > 0 => Conclusion::Undecided,
        () if claim.with_margin > 0 => Conclusion::WithinMargin,
        () if !claim.better.is_empty() => Conclusion::Better,
        () if !claim.differs.is_empty() => Conclusion::Differs,
        () => Conclusion::NoDifferenceShown,
    };
    claim
}

/// A test of the family: of a cell, or over all cells.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    /// The metric, with its percentile.
    pub(super) metric: &'a str,
    /// The outcome in words.
    pub(super) words: &'a str,
    /// The result for the margin; `None` without a margin.
    pub(super) margin: Option<&'a Margin>,
    /// The outcome.
    pub(super) outcome: Outcome,
    cell: Option<&'a CellAnswer>,
    quantity: &'a Quantity,
    /// The mean difference on the metric's scale; `None` without a test.
    mean: Option<f64>,
}

/// Returns the tests of an arm that belong to the family: those of its cells in their order, then the
/// effects over its cells.
pub(super) fn members<'a>(arm: &str, cells: &[&'a CellAnswer], pooled: &'a [Pooled]) -> Vec<Member<'a>> {
    let of_cell = |cell: &&'a CellAnswer| {
        let cell = *cell;
        cell.tests.iter().filter(|test| test.in_family).map(move |test| Member::of_cell(cell, test))
    };
    let over_cells = pooled.iter().filter(|one| one.arm == arm).map(Member::over_cells);
    cells.iter().flat_map(of_cell).chain(over_cells).collect()
}

impl<'a> Member<'a> {
    fn of_cell(cell: &'a CellAnswer, test: &'a Test) -> Member<'a> {
        let mean = match &test.found {
            Found::Tested(t) => Some(t.mean),
            Found::Same(difference) => Some(*difference),
            Found::Few(_) | Found::Nothing(_) => None,
        };
        let Test { metric, words, margin, outcome, quantity, .. } = test;
        Member { metric, words, margin: margin.as_ref(), outcome: *outcome, cell: Some(cell), quantity, mean }
    }

    fn over_cells(one: &'a Pooled) -> Member<'a> {
        let Pooled { metric, words, margin, outcome, quantity, t, .. } = one;
        let mean = Some(t.mean);
        Member { metric, words, margin: margin.as_ref(), outcome: *outcome, cell: None, quantity, mean }
    }

    /// The result for the margin; `None` if no margin applies.
    pub(super) fn judged(&self) -> Option<MarginAnswer> {
        self.margin.map(|margin| margin.answer).filter(|answer| *answer != MarginAnswer::NotJudged)
    }

    /// Whether this is the test of a cell.
    pub(super) fn is_of_cell(&self) -> bool {
        self.cell.is_some()
    }

    /// Whether the test alone makes the arm worse.
    pub(super) fn is_against(&self) -> bool {
        match self.judged() {
            Some(answer) => answer == MarginAnswer::Worse,
            None => self.outcome == Outcome::Worse,
        }
    }

    /// Whether the test could not be made, or does not show that the arm is within the margin.
    pub(super) fn is_open(&self) -> bool {
        match (self.judged(), self.outcome) {
            (Some(answer), _) => answer == MarginAnswer::NotShown,
            (None, Outcome::Refused | Outcome::Unknown) => true,
            (None, Outcome::Constant) => !self.is_equal(),
            (None, _) => false,
        }
    }

    fn is_equal(&self) -> bool {
        self.outcome == Outcome::Constant && self.mean == Some(0.0)
    }

    /// Returns the direction of the difference that the test shows; `None` if it shows none.
    fn direction(&self) -> Option<Outcome> {
        match (self.judged(), self.outcome) {
            (Some(MarginAnswer::Worse), _) => Some(Outcome::Worse),
            (_, outcome @ (Outcome::Worse | Outcome::Better | Outcome::Differs)) => Some(outcome),
            _ => None,
        }
    }

    fn shown(&self) -> Shown {
        let mean = self.mean.unwrap_or_default();
        Shown {
            metric: self.metric.to_owned(),
            sweep: self.cell.map(|cell| cell.sweep.clone()),
            cell: self.cell.map(|cell| cell.name.clone()),
            of: self.quantity.change(),
            change: self.quantity.scale.leave(mean),
            words: phrasing::moved(self.quantity, mean),
            margin: self.judged(),
            margin_words: self.margin.filter(|_| self.judged().is_some()).map(|margin| margin.words.clone()),
            size: mean.abs(),
        }
    }
}

/// Describes the failed requests of a cell, of which the arm has more or fewer than the baseline.
fn failing(cell: &CellAnswer) -> Shown {
    let Guardrail { difference, words, .. } = &cell.guardrail;
    Shown {
        metric: ERRORS.to_owned(),
        sweep: Some(cell.sweep.clone()),
        cell: Some(cell.name.clone()),
        of: "difference",
        change: difference.unwrap_or_default(),
        words: words.clone(),
        margin: None,
        margin_words: None,
        size: f64::INFINITY,
    }
}

/// Returns the metrics that are lower, or higher, in every round of the cells that have too few rounds for a
/// test.
fn unproven(cells: &[&CellAnswer]) -> Vec<Unproven> {
    let mut metrics: IndexMap<&str, (&Quantity, Observed, usize)> = IndexMap::new();
    let tests = cells.iter().flat_map(|cell| &cell.tests);
    for test in tests.filter(|test| test.in_family && test.outcome == Outcome::Refused) {
        let (_, sum, cells) = metrics.entry(&test.metric).or_insert((&test.quantity, Observed::default(), 0));
        *cells += 1;
        sum.higher += test.observed.higher;
        sum.lower += test.observed.lower;
        sum.equal += test.observed.equal;
    }
    let is_one_way = |sum: &Observed| sum.equal == 0 && (sum.higher == 0 || sum.lower == 0);
    let one_way = metrics.into_iter().filter(|(_, (_, sum, _))| is_one_way(sum));
    let unproven = |(metric, (quantity, sum, cells)): (&str, (&Quantity, Observed, usize))| {
        let words = match cells {
            1 => phrasing::seen_in(quantity, sum, "repeat"),
            cells => format!("{} of {cells} cells", phrasing::seen_in(quantity, sum, "round")),
        };
        Unproven { metric: metric.to_owned(), words }
    };
    one_way.map(unproven).collect()
}
