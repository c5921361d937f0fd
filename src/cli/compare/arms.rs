//! Selects the runs that are compared: cells that differ only in one axis, or the same cell now and in
//! earlier results.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::expand::{Cell, Expansion, PlannedRun, rounds};
use crate::plan::{MetricName, Plan, Scalar};
use crate::store::{RunRecord, Store};
use crate::units::Share;

use crate::cli::answers::Answered;
use crate::cli::given_up::GivenUpRuns;
use crate::cli::left_out::LeftOut;

use super::samples::{Absent, Earlier, Sample};

/// One declared comparison.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    /// The axis whose values are compared; `None` if results are compared with earlier ones.
    pub by: Option<String>,
    /// The value of the axis with which the other values are compared, or the path of the earlier results.
    pub baseline: String,
    /// The declared metrics.
    pub metrics: Vec<MetricName>,
    /// The names of the sweeps.
    pub sweeps: Vec<String>,
    /// The margin by which an arm may be worse; `None` if no margin is declared.
    pub margin: Option<Share>,
}

/// Two arms of a cell.
pub(crate) struct Arms {
    /// The sweep of the cell.
    pub sweep: String,
    /// The values of the axes on which both arms agree.
    pub cell: Map<String, Value>,
    /// The cell's display name.
    pub name: String,
    /// Other axes on which the arms differ.
    pub bound: Vec<String>,
    /// Whether the load of the cell is an open loop.
    pub open: bool,
    /// Maximum number of rounds, if the plan lets rounds stop early; otherwise `None`. Comparisons with a
    /// maximum are judged sequentially, whichever command reports them.
    pub at_most: Option<u32>,
    /// The names of the arms, the baseline first.
    pub names: [String; 2],
    /// The results of the arms by repeat, the baseline first; or why a repeat has no result.
    pub runs: [BTreeMap<u32, Result<Sample, Absent>>; 2],
}

/// Results of planned runs, each of which is read once.
pub(crate) struct Results<'w> {
    store: &'w Store,
    plan: &'w Plan,
    left_out: &'w LeftOut,
    given_up: GivenUpRuns,
    read: HashMap<String, Result<Sample, Absent>>,
}

impl<'w> Results<'w> {
    /// Prepares to read the results of a plan from a results folder; unreadable ones are added to `left_out`.
    pub(crate) fn new(store: &'w Store, plan: &'w Plan, left_out: &'w LeftOut) -> Results<'w> {
        Results { store, plan, left_out, given_up: GivenUpRuns::of(store, Some(plan), left_out), read: HashMap::new() }
    }

    /// Adds a result that was already read.
    pub(super) fn know(&mut self, record: &RunRecord, answered: &Answered) {
        self.read.insert(record.id.clone(), Ok(Sample::of(record, answered)));
    }

    /// Returns the result of a planned run, or why there is none.
    pub(crate) fn of(&mut self, run: &PlannedRun) -> Result<Sample, Absent> {
        let id = run.id.to_string();
        if let Some(known) = self.read.get(&id) {
            return known.clone();
        }
        let sample = self.left_out.take(Sample::planned(self.store, run, self.plan)).flatten();
        let why = || self.given_up.get(run).map_or_else(Absent::default, |found| Absent::of(&found.given_up));
        let sample = sample.ok_or_else(why);
        self.read.insert(id, sample.clone());
        sample
    }
}

/// All runs of a plan, and whether each is selected.
pub(crate) type Picked<'e> = (&'e Expansion, &'e [bool]);

/// Returns the arms of a declaration, by sweep in plan order. Pairs are formed over all cells; only the
/// selected runs are read.
pub(crate) fn arms(
    results: &mut Results,
    (expansion, picked): Picked,
    declared: &Declared,
    earlier: Option<&Earlier>,
) -> Vec<Arms> {
    let mut all = Vec::new();
    for sweep in &declared.sweeps {
        let cells = cells((expansion, picked), sweep);
        match (&declared.by, earlier) {
            (Some(by), _) => all.extend(by_axis(results, (expansion, &cells), (by, &declared.baseline))),
            (None, Some(earlier)) => all.extend(by_time(results, (expansion, &cells), &declared.baseline, earlier)),
            (None, None) => {}
        }
    }
    all
}

/// Returns the cells of a sweep in plan order, each with its selected runs by repeat.
fn cells<'e>((expansion, picked): Picked<'e>, sweep: &str) -> Vec<(&'e Cell, Vec<&'e PlannedRun>)> {
    let mut cells: BTreeMap<Vec<u32>, (&Cell, Vec<&PlannedRun>)> = BTreeMap::new();
    for (run, picked) in expansion.runs.iter().zip(picked).filter(|(run, _)| *run.sweep == *sweep) {
        let cell = cells.entry(run.cell.rank().to_vec()).or_insert_with(|| (&run.cell, Vec::new()));
        cell.1.extend(picked.then_some(run));
    }
    cells.into_values().collect()
}

type CellRuns<'e> = (&'e Cell, Vec<&'e PlannedRun>);

/// Pairs each value of an axis with the baseline.
fn by_axis(
    results: &mut Results,
    (expansion, cells): (&Expansion, &[CellRuns]),
    (by, baseline): (&str, &str),
) -> Vec<Arms> {
    let alone: Vec<&Cell> = cells.iter().map(|(cell, _)| *cell).collect();
    let rounds = rounds(&alone, by);
    let mut all = Vec::new();
    for group in &rounds.groups {
        let value = |at: &usize| alone[*at].get(by).map(Scalar::to_string);
        let has_runs = |at: &&usize| !cells[**at].1.is_empty();
        let first = group.iter().find(|at| value(at).as_deref() == Some(baseline));
        let Some(first) = first.filter(has_runs) else { continue };
        let from = runs(results, expansion, &cells[*first].1);
        for other in group.iter().filter(|at| *at != first).filter(has_runs) {
            let apart = |axis: &str| axis == by || rounds.bound.iter().any(|bound| bound == axis);
            let shared: Vec<(&str, &Scalar)> = alone[*other].iter().filter(|(axis, _)| !apart(axis)).collect();
            // An arm is judged by the interim analysis that ended it; a round that was in progress
            // at that time changes nothing.
            let ended = cells[*other].1.first().and_then(|run| expansion.rounds_of(&run.sweep, &run.cell));
            let until_end = |mut runs: BTreeMap<u32, Result<Sample, Absent>>| {
                runs.retain(|repeat, _| ended.is_none_or(|ended| *repeat < ended));
                runs
            };
            let to = runs(results, expansion, &cells[*other].1);
            all.push(Arms {
                names: [baseline.to_owned(), value(other).unwrap_or_default()],
                bound: rounds.bound.clone(),
                runs: [from.clone(), to].map(until_end),
                ..Arms::empty(results.plan, &cells[*other], &shared)
            });
        }
    }
    all
}

/// Pairs each cell with the same cell in earlier results.
fn by_time(
    results: &mut Results,
    (expansion, cells): (&Expansion, &[CellRuns]),
    baseline: &str,
    earlier: &Earlier,
) -> Vec<Arms> {
    let mut all = Vec::new();
    for cell in cells.iter().filter(|(_, runs)| !runs.is_empty()) {
        let now = runs(results, expansion, &cell.1);
        let mut then = BTreeMap::new();
        for run in &cell.1 {
            let found = earlier.find(run, results.plan);
            then.insert(run.repeat, results.left_out.take(found).unwrap_or_else(|| Err(Absent::default())));
        }
        let shared: Vec<(&str, &Scalar)> = cell.0.iter().collect();
        let names = [baseline.to_owned(), "now".to_owned()];
        all.push(Arms { names, runs: [then, now], ..Arms::empty(results.plan, cell, &shared) });
    }
    all
}

impl Arms {
    /// Returns arms without results, described by the axis values that both arms of the cell share.
    fn empty(plan: &Plan, (_, runs): &CellRuns, shared: &[(&str, &Scalar)]) -> Arms {
        let json = |value: &Scalar| serde_json::to_value(value).unwrap_or(Value::Null);
        let is_start = runs[0].spec.start;
        let name: Vec<String> = shared
            .iter()
            .filter_map(|(axis, value)| match *axis {
                // A run that measures a server start has no load.
                "batch_size" | "qps" if is_start => None,
                "scenario" if is_start => Some("start".to_owned()),
                "endpoint" | "model" | "scenario" => Some(value.to_string()),
                "batch_size" => Some(format!("batch {value}")),
                "qps" => Some(format!("{value} qps")),
                axis => Some(format!("{axis} {value}")),
            })
            .collect();
        Arms {
            sweep: runs[0].sweep.to_string(),
            cell: shared.iter().map(|(axis, value)| ((*axis).to_owned(), json(value))).collect(),
            name: name.join(" · "),
            bound: Vec::new(),
            open: runs[0].spec.load.qps().is_some(),
            at_most: plan.sweeps.get(&*runs[0].sweep).and_then(|sweep| plan.most_rounds(sweep)),
            names: Default::default(),
            runs: Default::default(),
        }
    }
}

/// Returns the results of a cell by repeat, without repeats that are neither needed nor present.
fn runs(results: &mut Results, expansion: &Expansion, runs: &[&PlannedRun]) -> BTreeMap<u32, Result<Sample, Absent>> {
    let found = runs.iter().map(|run| (run, results.of(run)));
    let is_wanted =
        |run: &PlannedRun, found: &Result<Sample, Absent>| found.is_ok() || expansion.why_pruned(run).is_none();
    found.filter(|(run, found)| is_wanted(run, found)).map(|(run, found)| (run.repeat, found)).collect()
}
