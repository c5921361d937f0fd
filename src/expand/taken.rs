//! Applies the findings of earlier sweeps to cells: their loads, and whether they are skipped. This is
//! a pure function of the plan and the findings: the same findings yield the same runs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::plan::model::take::{Figure, Use};
use crate::plan::{Scalar, SkipIf, Sweep, Take};
use crate::units::Decimal;

use super::bounds::{Asks, broken, without_load};
use super::cell::{Cell, Entry};
use super::deciding::about;
use super::evidence::{FoundValue, TakenValue};
use super::gates::Stop;
use super::known::{Finding, Known, Says};
use super::pending::{Pending, Waits};

/// The cells of a sweep, given the known findings.
pub(super) struct Settled {
    /// The cells that are runs.
    pub cells: Vec<Cell>,
    /// The cells that are not runs.
    pub pending: Vec<Pending>,
    /// The evidence for the loads of cells, by the ranks of the cells.
    pub evidence: HashMap<Vec<u32>, Vec<TakenValue>>,
}

/// Applies the known findings to the cells of `sweep`; without findings, loads are pending and nothing
/// is skipped.
pub(super) fn settle(
    name: &Arc<str>,
    sweep: &Sweep,
    cells: Vec<Cell>,
    known: Option<&Known>,
    gate: Option<&Stop>,
) -> Settled {
    let mut settled = Settled { cells: Vec::with_capacity(cells.len()), pending: Vec::new(), evidence: HashMap::new() };
    let is_plain = sweep.asks().next().is_none() && gate.is_none();
    if is_plain {
        settled.cells = cells;
        return settled;
    }
    let mut loads = Loads::default();
    let mut seen: HashSet<Vec<(String, Scalar)>> = HashSet::new();
    for cell in cells {
        let skip = || sweep.skip_if.as_ref().zip(known).and_then(|(skip, known)| left_out(skip, &cell, known));
        let filled = match gate.cloned().or_else(skip) {
            Some(stop) => Err(stop),
            None => loads.fill(&cell, known),
        };
        match filled {
            Ok((filled, taken)) => {
                // Two values on the axis may result in the same load; only one run is kept.
                if !seen.insert(filled.iter().map(|(axis, value)| (axis.to_owned(), value.clone())).collect()) {
                    continue;
                }
                if !taken.is_empty() {
                    settled.evidence.insert(filled.rank().to_vec(), taken);
                }
                settled.cells.push(filled);
            }
            Err(Stop { state, why }) => {
                settled.pending.push(Pending { sweep: name.clone(), cell, repeats: sweep.repeats.at_most, state, why });
            }
        }
    }
    settled.cells = loads.in_one_table(settled.cells);
    settled
}

/// Loads derived from findings, as additional values in the table of a sweep's cells.
#[derive(Default)]
struct Loads {
    /// The table of the cells, extended by the derived loads; empty until a load is added.
    entries: Vec<Entry>,
    /// Maps a written entry and the load derived from it to the entry that contains the load.
    made: HashMap<(u32, Decimal), u32>,
}

impl Loads {
    /// Returns the cell with its derived loads inserted, and the evidence for these loads.
    fn fill(&mut self, cell: &Cell, known: Option<&Known>) -> Result<(Cell, Vec<TakenValue>), Stop> {
        let (mut at, mut evidence) = (cell.rank().to_vec(), Vec::new());
        for number in &mut at {
            let entry = &cell.table()[*number as usize];
            let Some(take) = &entry.take else { continue };
            let taken = taken(take, &entry.axis, cell, known)?;
            if self.entries.is_empty() {
                self.entries = cell.table().to_vec();
            }
            let load = Scalar::Number(taken.load);
            *number = *self.made.entry((*number, taken.load)).or_insert_with(|| {
                self.entries.push(Entry::new(&entry.axis, &load, entry.place.clone()));
                self.entries.len() as u32 - 1
            });
            evidence.push(taken);
        }
        if evidence.is_empty() {
            return Ok((cell.clone(), evidence));
        }
        Ok((Cell::new(&self.entries.as_slice().into(), &at), evidence))
    }

    /// Makes all cells refer to one shared table.
    fn in_one_table(self, cells: Vec<Cell>) -> Vec<Cell> {
        if self.entries.is_empty() {
            return cells;
        }
        let table: Arc<[Entry]> = self.entries.into();
        cells.iter().map(|cell| Cell::new(&table, cell.rank())).collect()
    }
}

/// Returns the load of a cell that is derived from an earlier sweep, with its evidence.
fn taken(take: &Take, axis: &str, cell: &Cell, known: Option<&Known>) -> Result<TakenValue, Stop> {
    let waits = |why: String| Stop { state: Waits::Pending, why };
    let blocked = |why: String| Stop { state: Waits::Blocked, why };
    let from = &take.from;
    let Some(known) = known else { return Err(waits(format!("waits for `{from}`"))) };
    let about = about(known, (from, take.take.into()), &take.over.0, cell);
    if about.is_empty() {
        return Err(blocked(format!("`{from}` has no cell with these values, and therefore no {}", take.take.name())));
    }
    let open = about.iter().find_map(|finding| match &finding.says {
        Says::Open(standing) => Some(format!("waits for {}: {standing}", finding.title())),
        _ => None,
    });
    if let Some(why) = open {
        return Err(waits(why));
    }
    let mut found = Vec::with_capacity(about.len());
    for finding in &about {
        let Some(Usable { load, is_least, caveats }) = usable(finding, take.value) else {
            return Err(blocked(format!("no load to use: {}", without_load(finding))));
        };
        found.push(FoundValue {
            cell: finding.cell.iter().cloned().collect(),
            load,
            at_least: is_least,
            caveats,
            runs: finding.runs.iter().map(ToString::to_string).collect(),
        });
    }
    let (uses, values) = (take.uses.unwrap_or_default(), found.iter().map(|found| found.load));
    let value = match uses {
        Use::Min => values.min(),
        Use::Max => values.max(),
    };
    let load = value.and_then(|value| take.load(value));
    let Some(load) = load else {
        let value = value.map(|value| value.to_string()).unwrap_or_default();
        return Err(blocked(format!("{value} {} × {} is not a load", take.take.unit(), take.times)));
    };
    let uses = (!take.over.is_empty()).then(|| uses.name().to_owned());
    let value = take.value.map(|figure| figure.name().to_owned());
    let (axis, from, times) = (axis.to_owned(), from.clone(), take.times);
    Ok(TakenValue { axis, from, take: take.take, value, uses, times, load, found })
}

/// The load of a finding that a later sweep uses.
struct Usable {
    load: Decimal,
    is_least: bool,
    caveats: Vec<String>,
}

/// Returns the load of a finding that a later sweep uses: the load that was found, or the requested figure.
/// `None` if there is no such load.
fn usable(finding: &Finding, value: Option<Figure>) -> Option<Usable> {
    match (value, &finding.search, &finding.says) {
        (Some(Figure::Shown), Some(figures), _) => {
            Some(Usable { load: figures.shown?, is_least: false, caveats: Vec::new() })
        }
        (_, search, Says::Load { load, is_least, caveats, .. }) => {
            let unshown = search.as_ref().filter(|figures| figures.shown.is_none_or(|shown| shown < *load));
            let unshown = unshown.map(|figures| format!("not shown at 95 %: {}", figures.words(finding.metric)));
            let caveats = unshown.into_iter().chain(caveats.iter().cloned()).collect();
            Some(Usable { load: *load, is_least: *is_least, caveats })
        }
        _ => None,
    }
}

/// Returns the state and the reason if `skip_if` skips a cell, or if it is unknown whether it does.
fn left_out(skip: &SkipIf, cell: &Cell, known: &Known) -> Option<Stop> {
    let about = about(known, (&skip.sweep, skip.metric), &[], cell);
    let bounds = (skip.below, skip.above);
    let told = || about.iter().map(|finding| (finding, broken(finding, bounds, Asks::SkipIf)));
    if let Some(why) = told().find_map(|(_, broken)| broken.flatten()) {
        return Some(Stop { state: Waits::Pruned, why });
    }
    let undecided = told().find(|(_, broken)| broken.is_none()).map(|(finding, _)| finding);
    undecided.map(|finding| match &finding.says {
        Says::Open(standing) => {
            Stop { state: Waits::Pending, why: format!("waits for {}: {standing}", finding.title()) }
        }
        _ => Stop {
            state: Waits::Blocked,
            why: format!("it is unknown whether `skip_if` applies: {}", without_load(finding)),
        },
    })
}
