//! Runs of which what was measured decides which are made: the loads of a search, and of a ladder that ends early. All that could be made
//! are known beforehand, each with its id; nothing here decides, and no id depends on a decision.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::plan::model::search::{MOST_CONFIRMATIONS, MOST_OF_A_LOAD};
use crate::plan::{Scalar, StopRule, Sweep};
use crate::units::Nanos;

use super::cell::Cell;
use super::planned::PlannedRun;
use super::spec::RunSpec;

/// How the runs of a pool are chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Chooses {
    /// The highest load is searched that meets the objective.
    Search {
        /// The axis that is searched: `qps` or `batch_size`.
        axis: &'static str,
        /// The resolution, as a share of a load.
        within: f64,
        /// The window of the run that confirms the answer; none where nothing is confirmed.
        confirm: Option<Nanos>,
    },
    /// Loads run from the lightest up until one is shown to be too much.
    Ladder {
        /// The axis that rises: `qps` or `batch_size`.
        axis: &'static str,
        /// What ends it.
        stop: StopRule,
    },
}

impl Chooses {
    /// The axis whose value is chosen.
    pub fn axis(&self) -> &'static str {
        match self {
            Chooses::Search { axis, .. } | Chooses::Ladder { axis, .. } => axis,
        }
    }
}

/// A run that may be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The run.
    pub run: PlannedRun,
    /// Its load: requests per second, or requests in flight.
    pub load: f64,
    /// Whether it confirms the answer of a search, with the longer window.
    pub confirms: bool,
}

/// The runs of one cell but for its load.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// How they are chosen.
    pub chooses: Chooses,
    /// All that could be made, from the lightest load up, repeats of one together.
    pub members: Vec<Member>,
}

impl Pool {
    /// The loads that may be tried, rising.
    pub fn loads(&self) -> Vec<f64> {
        let mut loads: Vec<f64> = self.members.iter().map(|member| member.load).collect();
        loads.dedup();
        loads
    }

    /// The member of this load and repeat, counted from 0 among those that confirm, or that do not.
    pub fn find(&self, load: f64, repeat: u32, confirms: bool) -> Option<usize> {
        let members = self.members.iter().enumerate();
        let mut meant = members.filter(|(_, member)| member.load == load && member.confirms == confirms);
        meant.nth(repeat as usize).map(|(at, _)| at)
    }

    /// What people call it among others: `limit: vllm · llama · chat`.
    pub fn title(&self) -> String {
        format!("{}: {}", self.sweep, self.name())
    }

    /// What people call it in its sweep: endpoint, model and scenario, and its values on further axes.
    pub fn name(&self) -> String {
        let Some(first) = self.members.first() else { return self.sweep.to_string() };
        let values = first.run.cell.iter().filter(|(axis, _)| *axis != self.chooses.axis());
        values.map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" · ")
    }
}

/// A run that a pool may hold.
pub(super) struct Wanted<'c> {
    pub cell: &'c Cell,
    pub load: f64,
    pub repeat: u32,
    /// The window that confirms; none of an ordinary run.
    pub window: Option<Nanos>,
}

/// Cells that differ in their load alone, with how it is chosen.
type Group<'c> = (Chooses, Vec<&'c Cell>);

/// The cells of a sweep that differ in their load alone, with how it is chosen.
pub(super) fn groups<'c>(sweep: &Sweep, cells: &'c [Cell]) -> Vec<Group<'c>> {
    let mut groups: IndexMap<Vec<(&str, String)>, Group> = IndexMap::new();
    for cell in cells {
        let Some(chooses) = chooses(sweep, cell) else { continue };
        let others = cell.iter().filter(|(axis, _)| *axis != chooses.axis());
        let key = others.map(|(axis, value)| (axis, value.to_string())).collect();
        groups.entry(key).or_insert_with(|| (chooses, Vec::new())).1.push(cell);
    }
    groups.into_values().collect()
}

fn chooses(sweep: &Sweep, cell: &Cell) -> Option<Chooses> {
    if let Some((search, (axis, range))) = sweep.search.as_ref().and_then(|search| Some((search, search.axis()?))) {
        return Some(Chooses::Search { axis, within: range.within.to_f64(), confirm: search.confirmation() });
    }
    // A batch size beside a rate is a cap.
    let axis = if cell.get("qps").is_some() { "qps" } else { "batch_size" };
    Some(Chooses::Ladder { axis, stop: sweep.stop? })
}

/// All runs of a pool, from the lightest load up.
pub(super) fn wanted<'c>(sweep: &Sweep, chooses: &Chooses, cells: &[&'c Cell]) -> Vec<Wanted<'c>> {
    let mut loads: Vec<(f64, &Cell)> =
        cells.iter().filter_map(|cell| Some((load(cell, chooses.axis())?, *cell))).collect();
    loads.sort_by(|a, b| a.0.total_cmp(&b.0));
    let of = |(load, cell): (f64, &'c Cell)| {
        let (repeats, confirm) = match chooses {
            Chooses::Search { confirm, .. } => (MOST_OF_A_LOAD, *confirm),
            Chooses::Ladder { .. } => (sweep.repeats.at_most, None),
        };
        let probes = (0..repeats).map(move |repeat| Wanted { cell, load, repeat, window: None });
        // Arrivals and texts of their own: a load that was lucky with those of its probes is not lucky with them again.
        let confirming = confirm.into_iter().flat_map(move |window| {
            let repeats = repeats..repeats + MOST_CONFIRMATIONS;
            repeats.map(move |repeat| Wanted { cell, load, repeat, window: Some(window) })
        });
        probes.chain(confirming)
    };
    loads.into_iter().flat_map(of).collect()
}

fn load(cell: &Cell, axis: &str) -> Option<f64> {
    match cell.get(axis)? {
        Scalar::Number(number) => Some(number.to_f64()),
        _ => None,
    }
}

/// A run that confirms has this window, or its own where that is longer.
pub(super) fn lengthen(spec: &mut RunSpec, window: Nanos) {
    let measure = &mut spec.phases.measure;
    measure.duration = measure.duration.max(window);
    measure.at_most = measure.at_most.map(|at_most| at_most.max(measure.duration));
}
