//! The runs of a plan: fixed runs, and runs that measurements may select.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::plan::Table;

use super::cell::Cell;
use super::identity::RunId;
use super::pending::{Pending, Waits};
use super::planned::PlannedRun;
use super::pool::{Member, Pool};
use super::series::{CellEnd, Series};

/// All runs of a plan, in execution order.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The runs; a run that belongs to two sweeps appears twice, with the same id.
    pub runs: Vec<PlannedRun>,
    /// Pools of runs from which measurements select. Selected runs are in `runs` once
    /// [`Expansion::choose`] has added them.
    pub pools: Vec<Pool>,
    /// Cells that have not (yet) become runs, because they depend on the findings of earlier sweeps.
    pub pending: Vec<Pending>,
    /// Cells whose repeats may end early. All of their runs are in `runs`; [`Expansion::end_early`]
    /// determines which of them are skipped.
    pub series: Vec<Series>,
    /// For each sweep, the runs that are skipped because their cell has ended, each with the reason why the
    /// cell ended.
    pub(super) pruned: HashMap<Arc<str>, HashMap<RunId, String>>,
    /// Skipped sweeps, with the reason.
    pub(super) left_out: HashMap<String, String>,
    /// For each sweep, in declared order, the sweeps that it comes after.
    pub after: Table<Vec<String>>,
    /// For each endpoint, the resource that its runs occupy: runs on one resource never overlap.
    pub resources: Table<String>,
    /// Sweeps that compare launched servers. Their runs keep their order, regardless of how many server
    /// starts this requires.
    pub server_rounds: BTreeSet<String>,
}

impl Expansion {
    /// Every run that the plan may need: the fixed runs, and the runs that measurements may select.
    pub fn possible(&self) -> impl Iterator<Item = &PlannedRun> {
        self.runs.iter().chain(self.pools.iter().flat_map(|pool| &pool.members).map(|member| &member.run))
    }

    /// Stores after how many repeats each cell of each series ends.
    pub fn end_early(&mut self, ends: Vec<Vec<Option<CellEnd>>>) {
        self.pruned.clear();
        for (series, ends) in self.series.iter_mut().zip(ends) {
            for (cell, end) in series.cells.iter_mut().zip(ends) {
                let behind =
                    end.iter().flat_map(|end| cell.runs.iter().skip(end.after as usize).map(move |run| (run.id, end)));
                let of_sweep = self.pruned.entry(Arc::clone(&series.sweep)).or_default();
                of_sweep.extend(behind.map(|(id, end)| (id, end.why.clone())));
                cell.end = end;
            }
        }
    }

    /// Stores which sweeps are skipped, and why. Cells of these sweeps that wait for a result are
    /// skipped too.
    pub fn leave_out(&mut self, sweeps: Vec<(String, String)>) {
        self.left_out = sweeps.into_iter().collect();
        for pending in self.pending.iter_mut().filter(|pending| pending.state == Waits::Pending) {
            if let Some(why) = self.left_out.get(&*pending.sweep) {
                (pending.state, pending.why) = (Waits::LeftOut, why.clone());
            }
        }
    }

    /// The reason why the sweep of a run is skipped; `None` if it is not skipped.
    pub fn why_left_out(&self, run: &PlannedRun) -> Option<&str> {
        self.left_out.get(&*run.sweep).map(String::as_str)
    }

    /// The reason why a run is not needed: its sweep is skipped, or its cell ended before this repeat.
    /// The run may nevertheless have a result.
    pub fn why_pruned(&self, run: &PlannedRun) -> Option<&str> {
        self.why_left_out(run).or_else(|| self.why_behind(run))
    }

    fn why_behind(&self, run: &PlannedRun) -> Option<&str> {
        self.pruned.get(&run.sweep)?.get(&run.id).map(String::as_str)
    }

    /// The number of rounds after which a cell of a comparison ended; `None` if it has not ended, or if
    /// it cannot end early.
    pub fn rounds_of(&self, sweep: &str, cell: &Cell) -> Option<u32> {
        let cells = self.series.iter().filter(|series| *series.sweep == *sweep).flat_map(|series| &series.cells);
        let mut its = cells.filter(|runs| runs.runs.first().is_some_and(|run| run.cell.rank() == cell.rank()));
        its.next()?.end.as_ref().map(|end| end.after)
    }

    /// Replaces the runs of all pools by the selected members, which are given by their positions in each
    /// pool. The runs stay in the order of the sweeps.
    pub fn choose(&mut self, chosen: &[Vec<usize>]) {
        self.runs.retain(|run| self.pools.iter().all(|pool| pool.sweep != run.sweep));
        for (pool, chosen) in self.pools.iter().zip(chosen) {
            self.runs.extend(chosen.iter().map(|at| pool.members[*at].run.clone()));
        }
        let turn = |run: &PlannedRun| self.after.get_index_of(&*run.sweep);
        let mut runs = std::mem::take(&mut self.runs);
        runs.sort_by_key(turn);
        self.runs = runs;
    }

    /// Returns the same expansion with all members of all pools in `runs`, and for each pool the positions of
    /// its members in `runs`. Existing runs keep their order.
    pub fn with_members(&self) -> (Expansion, Vec<Vec<usize>>) {
        let mut whole = self.clone();
        let mut places = Vec::with_capacity(self.pools.len());
        for pool in &self.pools {
            let known =
                |run: &PlannedRun| self.runs.iter().position(|other| other.id == run.id && other.sweep == run.sweep);
            let mut place = |member: &Member| {
                known(&member.run).unwrap_or_else(|| {
                    whole.runs.push(member.run.clone());
                    whole.runs.len() - 1
                })
            };
            places.push(pool.members.iter().map(&mut place).collect());
        }
        (whole, places)
    }
}
