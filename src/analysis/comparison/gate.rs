//! The verdict of a gate on a comparison: passed, failed, or undecided.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Family, MarginAnswer, Outcome, Test};

/// The verdict of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Gate {
    /// Nothing is worse; with a margin, everything is shown to be no worse than the margin.
    Passes,
    /// At least one metric or the share of failed requests is worse.
    Fails {
        /// The failures, one for each metric or share that is worse.
        missed: Vec<Missed>,
    },
    /// Nothing is worse, but the conditions for passing are not shown to hold.
    Unanswered {
        /// The reason.
        why: String,
    },
}

/// A failure of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Missed {
    /// The sweep of the cell.
    pub sweep: String,
    /// The cell's readable name.
    pub cell: String,
    /// The arm that is worse.
    pub arm: String,
    /// The baseline that the arm is worse than.
    pub baseline: String,
    /// The metric, and how much worse the arm is in this metric.
    pub what: String,
}

impl Gate {
    /// Judges all declarations. An arm that fails more requests fails the gate, regardless of the
    /// compared metrics. With a margin, a metric fails the gate if the arm is shown to be worse than the
    /// margin, and passes it if the arm is shown not to be worse than the margin. Without a margin, or
    /// for a metric that has no margin, the metric fails the gate if the arm is worse.
    pub fn of(families: &[Family]) -> Gate {
        let missed: Vec<Missed> = families.iter().flat_map(missed).collect();
        if !missed.is_empty() {
            return Gate::Fails { missed };
        }
        let tests = |has_margin: bool| {
            let of = families.iter().filter(move |family| family.margin.is_some() == has_margin);
            of.flat_map(|family| &family.cells).flat_map(|cell| &cell.tests).collect::<Vec<_>>()
        };
        let (with, without) = (tests(true), tests(false));
        let open = match (with.is_empty(), without.is_empty()) {
            (true, _) => untested(&without),
            (false, true) => undecided(&with),
            (false, false) => undecided(&with).or_else(|| untested(&without)),
        };
        match open {
            Some(why) => Gate::Unanswered { why },
            None => Gate::Passes,
        }
    }
}

fn missed(family: &Family) -> Vec<Missed> {
    let mut missed = Vec::new();
    for cell in &family.cells {
        let mut miss = |what: String| {
            let (sweep, name, arm) = (cell.sweep.clone(), cell.name.clone(), cell.arm.clone());
            missed.push(Missed { sweep, cell: name, arm, baseline: family.baseline.clone(), what });
        };
        if cell.guardrail.outcome == Outcome::Worse {
            miss(format!("errors: {}", cell.guardrail.words));
        }
        for test in &cell.tests {
            match &test.margin {
                Some(margin) if margin.answer == MarginAnswer::Worse => {
                    miss(format!("{} {}", test.metric, margin.words))
                }
                Some(margin) if margin.answer != MarginAnswer::NotJudged => {}
                _ if test.outcome == Outcome::Worse => miss(format!("{} {}", test.metric, test.words)),
                _ => {}
            }
        }
    }
    missed
}

/// Describes the metrics that are not shown to be within the margin, with the number of repeats that
/// would suffice; `None` if all metrics are shown to be within it. If no metric has a margin, explains
/// why nothing could be tested.
fn undecided(tests: &[&Test]) -> Option<String> {
    let judged = tests.iter().filter_map(|test| Some((*test, test.margin.as_ref()?)));
    let judged: Vec<_> = judged.filter(|(_, margin)| margin.answer != MarginAnswer::NotJudged).collect();
    if judged.is_empty() {
        return untested(tests);
    }
    let open: Vec<_> = judged.iter().filter(|(_, margin)| margin.answer == MarginAnswer::NotShown).collect();
    let (first, margin) = open.first()?;
    let most = open.iter().filter_map(|(_, margin)| margin.repeats_needed).max();
    let all = open.iter().all(|(_, margin)| margin.repeats_needed.is_some());
    // The line contains two numbers of repeats, so each states the metrics to which it applies.
    let repeats = match most.filter(|_| all && open.len() > 1) {
        Some(most) if margin.repeats_needed == Some(most) => " for all".to_owned(),
        Some(most) => format!(" for it, and {most} repeats would suffice for all"),
        None => String::new(),
    };
    let unknown = match first.outcome {
        Outcome::Unknown => format!(" ({}; measure longer, or choose other metrics)", first.words),
        _ => String::new(),
    };
    let (count, of) = (open.len(), judged.len());
    Some(format!(
        "{count} of {of} metrics are not shown to be within the margin, such as {}: {}{repeats}{unknown}",
        first.metric, margin.words
    ))
}

/// Returns a sentence that explains why nothing could be tested; `None` if any test was possible. A gate
/// does not pass if nothing could be tested.
fn untested(tests: &[&Test]) -> Option<String> {
    let count = |outcome| tests.iter().filter(|test| test.outcome == outcome).count();
    let (refused, unknown) = (count(Outcome::Refused), count(Outcome::Unknown));
    if refused + unknown < tests.len() {
        return None;
    }
    let first = tests.iter().find(|test| test.outcome == Outcome::Refused).or_else(|| tests.first());
    let first = first.map_or_else(String::new, |test| format!(", such as {}: {}", test.metric, test.words));
    Some(format!("nothing could be tested ({refused} refused, {unknown} n/a){first}"))
}
