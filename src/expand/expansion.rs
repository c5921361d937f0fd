//! A plan's runs: those that are known, and those that what is measured may choose.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::plan::Table;

use super::cell::Cell;
use super::identity::RunId;
use super::pending::{Pending, Waits};
use super::planned::PlannedRun;
use super::pool::{Member, Pool};
use super::series::{CellEnd, Series};

/// All runs of a plan, in the order in which they are executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The runs; two sweeps may hold the same run, with the same id.
    pub runs: Vec<PlannedRun>,
    /// Runs of which what was measured decides which are made; those that are, are among `runs` once [`Expansion::choose`] put them there.
    pub pools: Vec<Pool>,
    /// Cells that are no runs, or not yet: what earlier sweeps find decides about them.
    pub pending: Vec<Pending>,
    /// Cells whose repeats end early. Their runs are among `runs`, all of them: which are left out, [`Expansion::end_early`] says.
    pub series: Vec<Series>,
    /// Runs behind the end of their cell, with the reason; by sweep and id.
    pub(super) pruned: HashMap<Arc<str>, HashMap<RunId, String>>,
    /// Sweeps that are left out, with the reason.
    pub(super) left_out: HashMap<String, String>,
    /// For each sweep, in declared order, the sweeps it comes after.
    pub after: Table<Vec<String>>,
    /// For each endpoint, what its runs occupy: runs on one resource never overlap.
    pub resources: Table<String>,
    /// Sweeps that compare launched servers with each other: their runs keep their order, whatever starts that takes.
    pub server_rounds: BTreeSet<String>,
}

impl Expansion {
    /// Every run that the plan may ask for: those that it does, and those that what is measured may choose.
    pub fn possible(&self) -> impl Iterator<Item = &PlannedRun> {
        self.runs.iter().chain(self.pools.iter().flat_map(|pool| &pool.members).map(|member| &member.run))
    }

    /// Takes in when cells end, for each series and each of its cells.
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

    /// Takes in which sweeps are left out, and why; so are their cells that wait for an answer.
    pub fn leave_out(&mut self, sweeps: Vec<(String, String)>) {
        self.left_out = sweeps.into_iter().collect();
        for pending in self.pending.iter_mut().filter(|pending| pending.state == Waits::Pending) {
            if let Some(why) = self.left_out.get(&*pending.sweep) {
                (pending.state, pending.why) = (Waits::LeftOut, why.clone());
            }
        }
    }

    /// Why the sweep of a run is left out.
    pub fn why_left_out(&self, run: &PlannedRun) -> Option<&str> {
        self.left_out.get(&*run.sweep).map(String::as_str)
    }

    /// Why a run is not needed: its sweep is left out, or it lies behind the end of its cell. It may be there all the same.
    pub fn why_pruned(&self, run: &PlannedRun) -> Option<&str> {
        self.why_left_out(run).or_else(|| self.why_behind(run))
    }

    fn why_behind(&self, run: &PlannedRun) -> Option<&str> {
        self.pruned.get(&run.sweep)?.get(&run.id).map(String::as_str)
    }

    /// After how many rounds a cell of a comparison ended; none while it goes on, and where nothing ends it early.
    pub fn rounds_of(&self, sweep: &str, cell: &Cell) -> Option<u32> {
        let cells = self.series.iter().filter(|series| *series.sweep == *sweep).flat_map(|series| &series.cells);
        let mut its = cells.filter(|runs| runs.runs.first().is_some_and(|run| run.cell.rank() == cell.rank()));
        its.next()?.end.as_ref().map(|end| end.after)
    }

    /// Puts the chosen members of each pool, by position in it, among the runs, where the sweep has its place.
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

    /// The same with every member of a pool among the runs, and for each pool the positions of its members there. Runs keep their places.
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
