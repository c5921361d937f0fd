//! The verdict of a gate on a comparison: passed, failed, or undecided. It follows from what is claimed
//! about each arm.

use schemars::JsonSchema;
use serde::Serialize;

use super::claim::{Member, members};
use super::{CellAnswer, Claim, Conclusion, Family, MarginAnswer, Outcome, Shown};

/// The verdict of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Gate {
    /// Every test was made and nothing is worse; with a margin, everything is shown to be no worse than the
    /// margin.
    Passes,
    /// At least one metric or the share of failed requests is worse.
    Fails {
        /// The failures, one for each metric or share that is worse.
        missed: Vec<Missed>,
        /// Why other arms are undecided; null if none is.
        undecided: Option<String>,
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
    /// The sweep of the cell; for an effect over all cells, the names of their sweeps.
    pub sweep: String,
    /// The cell's readable name, or `all cells`.
    pub cell: String,
    /// The arm that is worse.
    pub arm: String,
    /// The baseline that the arm is worse than.
    pub baseline: String,
    /// The metric, and how much worse the arm is in this metric.
    pub what: String,
}

impl Gate {
    /// Judges all declarations by their claims. An arm that fails more requests fails the gate, regardless
    /// of the compared metrics. With a margin, a metric fails the gate if the arm is shown to be worse than
    /// the margin, and passes it if the arm is shown not to be worse than the margin. Without a margin, or
    /// for a metric that has no margin, the metric fails the gate if the arm is worse, and passes it if a
    /// test could be made.
    pub fn of(families: &[Family]) -> Gate {
        let missed: Vec<Missed> = families.iter().flat_map(missed).collect();
        let open = |family: &Family| family.claims.iter().any(|claim| claim.conclusion == Conclusion::Undecided);
        let why: Vec<String> = families.iter().filter(|family| open(family)).map(why).collect();
        if !missed.is_empty() {
            return Gate::Fails { missed, undecided: (!why.is_empty()).then(|| why.join("; ")) };
        }
        match families.iter().all(|family| family.claims.is_empty()) {
            true => Gate::Unanswered { why: "nothing could be tested (0 refused, 0 n/a)".to_owned() },
            false if !why.is_empty() => Gate::Unanswered { why: why.join("; ") },
            false => Gate::Passes,
        }
    }
}

fn missed(family: &Family) -> Vec<Missed> {
    let of_claim = |claim: &Claim| {
        let against = claim.worse.iter().filter(|one| one.margin.is_none_or(|answer| answer == MarginAnswer::Worse));
        against.map(|one| of_shown(family, claim, one)).collect::<Vec<_>>()
    };
    family.claims.iter().flat_map(of_claim).collect()
}

fn of_shown(family: &Family, claim: &Claim, one: &Shown) -> Missed {
    let sweeps = || {
        let of_arm = family.cells.iter().filter(|cell| cell.arm == claim.arm).map(|cell| cell.sweep.as_str());
        of_arm.collect::<indexmap::IndexSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    };
    let words = one.margin_words.as_ref().unwrap_or(&one.words);
    let colon = if one.metric == super::claim::ERRORS { ":" } else { "" };
    Missed {
        sweep: one.sweep.clone().unwrap_or_else(sweeps),
        cell: one.cell.clone().unwrap_or_else(|| "all cells".to_owned()),
        arm: claim.arm.clone(),
        baseline: family.baseline.clone(),
        what: format!("{}{colon} {words}{}", one.metric, claim.scope()),
    }
}

/// Describes the tests of a family that leave it undecided, with the number of repeats that would suffice.
fn why(family: &Family) -> String {
    let of_claim = |claim: &Claim| {
        let cells: Vec<&CellAnswer> = family.cells.iter().filter(|cell| cell.arm == claim.arm).collect();
        members(&claim.arm, &cells, &family.pooled)
    };
    let all: Vec<Member> = family.claims.iter().flat_map(of_claim).collect();
    let open: Vec<&Member> = all.iter().filter(|member| member.is_open()).collect();
    match all.iter().any(|member| member.judged().is_some()) {
        true => outside(&open, all.len()),
        false => untested(&open, all.len()),
    }
}

/// Describes the tests that do not show the arm to be within the margin.
fn outside(open: &[&Member], of: usize) -> String {
    let Some(first) = open.iter().find(|member| member.judged().is_some()).or(open.first()) else {
        return "nothing could be tested".to_owned();
    };
    let needed = |member: &&Member| member.margin.and_then(|margin| margin.repeats_needed);
    // The effects over all cells need no repeats of their own.
    let of_cells = || open.iter().copied().filter(|member| member.is_of_cell());
    let most = of_cells().filter_map(|member| needed(&member)).max();
    let all = of_cells().all(|member| needed(&member).is_some());
    // The line contains two numbers of repeats, so each states the tests to which it applies.
    let repeats = match most.filter(|_| all && open.len() > 1) {
        Some(most) if needed(first) == Some(most) => " for all of them".to_owned(),
        Some(most) => format!(" for it, and {most} repeats for all of them"),
        None => String::new(),
    };
    let unknown = match first.outcome {
        Outcome::Unknown => format!(" ({}; measure longer, or choose other metrics)", first.words),
        _ => String::new(),
    };
    let words = first.margin.filter(|_| first.judged().is_some()).map_or(first.words, |margin| margin.words.as_str());
    let count = open.len();
    format!(
        "{count} of {of} tests do not show the arm to be within the margin, such as {}: {words}{repeats}{unknown}",
        first.metric
    )
}

/// Describes the tests that could not be made. A gate does not pass if any could not be made.
fn untested(open: &[&Member], of: usize) -> String {
    let count = |outcome| open.iter().filter(|member| member.outcome == outcome).count();
    let (refused, unknown) = (count(Outcome::Refused), count(Outcome::Unknown));
    let first = open.iter().find(|member| member.outcome == Outcome::Refused).or(open.first());
    let first = first.map_or_else(String::new, |member| format!(", such as {}: {}", member.metric, member.words));
    let what = match open.len() {
        all if all == of => "nothing could be tested".to_owned(),
        some => format!("{some} of {of} tests could not be made"),
    };
    format!("{what} ({refused} refused, {unknown} n/a){first}")
}
