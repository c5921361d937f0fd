//! The preview of repeats that may end early: the minimum, maximum and expected number of runs, and the state
//! of each cell.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::comparison::{allowed, percent};
use crate::expand::{CellRuns, Ends, Series};
use crate::sweep::endings::{CellStanding, FEWEST};
use crate::sweep::event::planned_cell;
use crate::units::text::counted;

use super::super::workspace::Workspace;

/// The state of a cell whose repeats may end early.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RepeatsState {
    /// The sweep of the cell.
    pub sweep: String,
    /// The cell's display name.
    pub cell: String,
    /// The condition that ends the repeats of the cell: `known`, the cell's means are known precisely
    /// enough; or `shown`, every metric of a comparison is decided.
    pub ends: &'static str,
    /// For `known`: the maximum half-width of the interval of a mean, as a share of the mean (0.02 means
    /// 2 %); null for `shown`.
    pub within: Option<f64>,
    /// The names of the metrics that the condition considers; for `shown`, these are the metrics that the
    /// plan names.
    pub metrics: Vec<String>,
    /// Number of repeats that are evaluated: the finished ones before the first unfinished one.
    pub finished: u32,
    /// The minimum number of repeats.
    pub at_least: u32,
    /// The maximum number of repeats.
    pub at_most: u32,
    /// For `known`: half of the widest interval so far, as a share of the mean; null with fewer than three
    /// repeats.
    pub half: Option<f64>,
    /// The expected number of repeats, based on the deviation of the cell's runs so far; null if
    /// unknown.
    pub expected: Option<u32>,
    /// The state or the result of the cell, as text.
    pub standing: String,
    #[serde(skip)]
    has_answer: bool,
}

/// Returns every cell of the plan whose repeats may end early, in plan order.
pub(crate) fn repeats(workspace: &Workspace) -> Vec<RepeatsState> {
    let all = workspace.expansion.series.iter().zip(&workspace.standing);
    let of = |(series, standing): (&'_ Series, &'_ Vec<CellStanding>)| -> Vec<RepeatsState> {
        series.cells.iter().zip(standing).map(|(cell, standing)| RepeatsState::of(series, cell, standing)).collect()
    };
    all.flat_map(of).collect()
}

impl RepeatsState {
    fn of(series: &Series, cell: &CellRuns, standing: &CellStanding) -> RepeatsState {
        let (ends, within, metrics) = match &series.ends {
            Ends::Known { within, metrics } => ("known", Some(*within), metrics),
            Ends::Shown { metrics, .. } => ("shown", None, metrics),
        };
        let most = cell.runs.len() as u32;
        let end = standing.end.as_ref();
        let half =
            standing.half.filter(|_| end.is_none()).map(|half| format!(": known to within {} so far", percent(half)));
        let word = if within.is_some() { "repeat" } else { "round" };
        RepeatsState {
            sweep: series.sweep.to_string(),
            cell: planned_cell(&cell.runs[0]),
            ends,
            within,
            metrics: metrics.iter().map(|name| name.to_string()).collect(),
            finished: standing.finished,
            at_least: end.map_or(FEWEST.max(standing.finished).min(most), |end| end.after),
            at_most: end.map_or(most, |end| end.after),
            half: standing.half,
            expected: end.map(|end| end.after).or(standing.expect),
            has_answer: end.is_some(),
            standing: match end {
                Some(end) => end.why.clone(),
                None => {
                    let of = counted(most as usize, word);
                    format!("{} of {of}{}", standing.finished, half.unwrap_or_default())
                }
            },
        }
    }
}

/// Returns the summary of the repeats of one sweep: the condition, the number of runs, and how many cells
/// have ended; `None` if the number of repeats is fixed.
pub(crate) fn words<'a>(cells: impl Iterator<Item = &'a RepeatsState> + Clone) -> Option<String> {
    let first = cells.clone().next()?;
    let rule = match first.within {
        Some(within) => {
            format!("until the means of {} are known to within {}", first.metrics.join(", "), allowed(within))
        }
        None => "until every metric of the comparison is decided".to_owned(),
    };
    let sum = |of: fn(&RepeatsState) -> u32| cells.clone().map(of).sum::<u32>();
    let (least, most) = (sum(|cell| cell.at_least), sum(|cell| cell.at_most));
    let (count, answered) = (cells.clone().count(), cells.clone().filter(|cell| cell.has_answer).count());
    let word = if first.within.is_some() { "known" } else { "decided" };
    let runs = match least == most {
        true => counted(most as usize, "run"),
        false => {
            let expected: Option<u32> = cells.map(|cell| cell.expected).sum();
            let expected = expected.map(|expected| format!(", {expected} expected from existing results"));
            format!("{least} to {most} runs{}", expected.unwrap_or_default())
        }
    };
    let answered = if answered == 0 && least < most { String::new() } else { format!(", {answered} of them {word}") };
    Some(format!("{rule}: {runs} in {}{answered}", counted(count, "cell")))
}
