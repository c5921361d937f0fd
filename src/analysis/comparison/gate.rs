//! What a gate says of a comparison: passed, failed, or not answered.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Family, MarginAnswer, Outcome, Test};

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Gate {
    /// Nothing is worse; with a margin, all is shown not to be worse than that.
    Passes,
    /// Something is worse.
    Fails {
        /// What.
        missed: Vec<Missed>,
    },
    /// Nothing is worse, and what it takes to pass is not known.
    Unanswered {
        /// Why.
        why: String,
    },
}

/// What fails a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Missed {
    /// The sweep of the cell.
    pub sweep: String,
    /// The cell as people read it.
    pub cell: String,
    /// The arm that is worse.
    pub arm: String,
    /// What it is worse than.
    pub baseline: String,
    /// In what, and by how much.
    pub what: String,
}

impl Gate {
    /// Of all declarations. An arm that fails more requests fails the gate, whatever is compared. With a margin a metric fails it
    /// where the arm is shown to be worse than that, and passes where it is shown not to be; without one, or for a metric that has none,
    /// it fails where the arm is worse.
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

/// Which metrics are not shown to keep the margin, with the repeats that would do; none where all are. Where none has a margin, what
/// could not be tested.
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
    // Two figures in one line each say what they are of.
    let repeats = match most.filter(|_| all && open.len() > 1) {
        Some(most) if margin.repeats_needed == Some(most) => " for all".to_owned(),
        Some(most) => format!(" for it, and {most} repeats would do for all"),
        None => String::new(),
    };
    let unknown = if first.outcome == Outcome::Unknown { format!(" ({})", first.words) } else { String::new() };
    let (count, of) = (open.len(), judged.len());
    Some(format!(
        "{count} of {of} metrics are not shown to keep the margin, like {}: {}{repeats}{unknown}",
        first.metric, margin.words
    ))
}

/// Why none of it could be tested, in a sentence; none where a test could. A gate that cannot fail is not a gate.
fn untested(tests: &[&Test]) -> Option<String> {
    let count = |outcome| tests.iter().filter(|test| test.outcome == outcome).count();
    let (refused, unknown) = (count(Outcome::Refused), count(Outcome::Unknown));
    if refused + unknown < tests.len() {
        return None;
    }
    let first = tests.iter().find(|test| test.outcome == Outcome::Refused).or_else(|| tests.first());
    let first = first.map_or_else(String::new, |test| format!(", like {}: {}", test.metric, test.words));
    Some(format!("nothing could be tested ({refused} refused, {unknown} n/a){first}"))
}
