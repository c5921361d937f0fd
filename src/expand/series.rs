//! Repeats that may end early: the remaining runs of a cell are skipped once its measurements suffice. All
//! runs are known in advance, with the same ids as if every repeat were executed. No decisions are made here.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::plan::{MetricName, Percentile, Plan, Sweep};

use super::planned::PlannedRun;
use super::rounds::rounds;

/// The condition that ends the repeats of cells.
#[derive(Debug, Clone, PartialEq)]
pub enum Ends {
    /// Every mean over the runs of a cell is known precisely enough.
    Known {
        /// The required half-width of the interval, as a share of the mean.
        within: f64,
        /// The metrics whose means must be known.
        metrics: Vec<MetricName>,
    },
    /// Each arm is shown to differ from its baseline, or to be equivalent to it.
    Shown {
        /// The metrics that the plan names; empty for the default metrics.
        metrics: Vec<MetricName>,
        /// The margin by which an arm may be worse, as a share.
        margin: Option<f64>,
        /// The sweep that declares the comparison; `None` if the plan declares it for all its sweeps.
        declared_by: Option<Arc<str>>,
    },
}

/// The number of repeats after which a cell ends, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellEnd {
    /// The number of executed repeats.
    pub after: u32,
    /// The result that the executed repeats showed, as text.
    pub why: String,
}

/// The runs of one cell, in the order of their repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRuns {
    /// All runs of the cell that may be executed.
    pub runs: Vec<PlannedRun>,
    /// The end of the repeats, if the results so far have determined it; see [`super::Expansion::end_early`].
    pub end: Option<CellEnd>,
}

/// Cells whose repeats end together or depend on each other: a single cell, or the arms of a comparison
/// with the baseline first.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// The condition that ends the repeats.
    pub ends: Ends,
    /// The cells, each with its runs.
    pub cells: Vec<CellRuns>,
}

impl Series {
    /// The runs of all cells.
    pub fn runs(&self) -> impl Iterator<Item = &PlannedRun> {
        self.cells.iter().flat_map(|cell| &cell.runs)
    }

    /// Maximum number of runs of one cell.
    pub fn at_most(&self) -> u32 {
        self.cells.iter().map(|cell| cell.runs.len() as u32).max().unwrap_or(0)
    }
}

/// Creates the series of a plan from its runs.
pub(super) fn series(plan: &Plan, runs: &[PlannedRun]) -> Vec<Series> {
    plan.sweeps.iter().flat_map(|(name, sweep)| of_sweep(plan, (name, sweep), runs)).collect()
}

fn of_sweep(plan: &Plan, (name, sweep): (&String, &Sweep), runs: &[PlannedRun]) -> Vec<Series> {
    let is_sequential = plan.most_rounds(sweep).is_some();
    if sweep.chooses_runs() || (sweep.repeats.until.is_none() && !is_sequential) {
        return Vec::new();
    }
    let mut cells: IndexMap<&[u32], Vec<PlannedRun>> = IndexMap::new();
    for run in runs.iter().filter(|run| *run.sweep == **name) {
        cells.entry(run.cell.rank()).or_default().push(run.clone());
    }
    let mut cells: Vec<CellRuns> = cells.into_values().map(|runs| CellRuns { runs, end: None }).collect();
    cells.iter_mut().for_each(|cell| cell.runs.sort_by_key(|run| run.repeat));
    let sweep_name: Arc<str> = name.as_str().into();
    if let Some(within) = sweep.repeats.until {
        let one = |cell: CellRuns| Series {
            sweep: Arc::clone(&sweep_name),
            ends: Ends::Known { within: within.to_f64(), metrics: metrics(plan, sweep, &cell.runs[0]) },
            cells: vec![cell],
        };
        return cells.into_iter().map(one).collect();
    }
    let Some(compare) = plan.compared(sweep) else { return Vec::new() };
    let of_cells: Vec<&super::Cell> = cells.iter().map(|cell| &cell.runs[0].cell).collect();
    let groups = rounds(&of_cells, &compare.by).groups;
    let is_baseline = |at: &usize| of_cells[*at].get(&compare.by) == Some(&compare.baseline);
    let ends = Ends::Shown {
        metrics: compare.metrics.0.clone(),
        margin: compare.margin.map(|margin| margin.to_f64()),
        declared_by: sweep.compare.as_ref().map(|_| Arc::clone(&sweep_name)),
    };
    let of_group = |group: &Vec<usize>| {
        let baseline = group.iter().position(is_baseline).filter(|_| group.len() > 1)?;
        let mut group = group.clone();
        group[..=baseline].rotate_right(1);
        let cells = group.iter().map(|at| cells[*at].clone()).collect();
        Some(Series { sweep: Arc::clone(&sweep_name), ends: ends.clone(), cells })
    };
    groups.iter().filter_map(of_group).collect()
}

/// Returns the metrics whose means must be known in a cell.
fn metrics(plan: &Plan, sweep: &Sweep, run: &PlannedRun) -> Vec<MetricName> {
    let one = |key: &'static str, percentile| MetricName { key, percentile };
    if !sweep.repeats.metrics.is_empty() {
        return sweep.repeats.metrics.0.iter().map(|name| name.or_median()).collect();
    }
    if run.spec.start {
        return vec![one("start_ready", None)];
    }
    // In an open loop, latencies are measured from the schedule.
    let is_open = run.spec.load.qps().is_some();
    let of = |closed, open| if is_open { open } else { closed };
    let (ttft, e2e) = (of("ttft", "ttft_from_schedule"), of("e2e", "e2e_from_schedule"));
    let throughput = std::iter::once(one("output_throughput", None));
    let Some(slo) = plan.slo.as_ref().filter(|slo| !slo.is_empty()) else {
        return throughput.chain([ttft, e2e].map(|key| one(key, Some(Percentile::P50)))).collect();
    };
    let limits = [(ttft, &slo.ttft), ("itl", &slo.itl), ("tpot", &slo.tpot), (e2e, &slo.e2e)];
    let limited = limits.into_iter().flat_map(|(key, by)| by.keys().map(move |at| (key, *at)));
    let limited = limited.map(|(key, at)| MetricName { key, percentile: Some(at) });
    throughput.chain(limited).collect()
}
