//! Expands a plan to RunSpecs, and determines their order and identity.
//!
//! The plan has been checked: names are known, aliases are resolved, and the axes `endpoint`,
//! `model` and `scenario` are filled in. Any remaining error is an [`ExpandError`], never a panic.

mod axes;
mod bounds;
pub mod canonical;
mod cell;
mod course;
mod deciding;
pub mod error;
mod evidence;
mod expansion;
pub mod explicit;
mod gates;
mod hooks;
pub mod identity;
pub mod known;
pub mod labels;
pub mod launch;
pub mod matrix;
pub mod order;
pub mod origin;
mod pending;
mod planned;
pub mod pool;
pub mod resolve;
pub mod resource;
mod rounds;
mod series;
mod shared;
pub mod spacing;
mod spec;
mod taken;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

pub use canonical::canonical;
pub use cell::Cell;
pub use course::Course;
pub use deciding::deciding;
pub use error::ExpandError;
pub(crate) use error::Mistake;
pub use evidence::TakenValue;
pub use expansion::Expansion;
pub use explicit::explicit;
pub use gates::{GateAnswer, GateState, GateValue, gate_states};
pub use hooks::{ConcreteHook, concrete_hooks};
pub use identity::{Difference, RunId, differences};
pub use known::{Finding, Known, Longer, Says, SearchFigures};
pub use origin::origin;
pub use pending::{Pending, Waits};
pub use planned::PlannedRun;
pub use pool::{Chooses, Member, Optimized, Pool, Searched, Trial};
pub use rounds::{Rounds, rounds};
pub use series::{CellEnd, CellRuns, Ends, Series};
pub use spec::*;

use crate::plan::{ErrorPolicy, Plan, ResolvedPlan, Slo, Sweep};

/// Returns all runs of `plan`. Sweeps are in declared order. Each sweep has one block per repeat, which
/// contains every cell once, in shuffled order; compared cells stay together. Cells whose loads come from
/// earlier sweeps are pending, and gates and `skip_if` have no effect.
pub fn expand(plan: &ResolvedPlan) -> Result<Expansion, ExpandError> {
    expand_by(plan, None)
}

/// Returns all runs of `plan`, given the known findings of earlier sweeps. Cells whose loads have been found
/// become ordinary runs, and gates and `skip_if` apply.
pub fn expand_with(plan: &ResolvedPlan, known: &Known) -> Result<Expansion, ExpandError> {
    expand_by(plan, Some(known))
}

fn expand_by(plan: &ResolvedPlan, known: Option<&Known>) -> Result<Expansion, ExpandError> {
    let mut runs = Vec::new();
    let mut making = Making {
        resolver: resolve::Resolver::new(plan),
        bytes: canonical::Bytes::default(),
        server_rounds: BTreeSet::new(),
        pools: Vec::new(),
        pending: Vec::new(),
        known,
        gates: known.map(|known| gates::gates(plan, known)).unwrap_or_default(),
    };
    for (name, sweep) in &plan.sweeps {
        making.sweep(plan, name, sweep, &mut runs)?;
    }
    one_engine(&runs)?;
    keep_what_any_asks(&mut runs);
    let after = plan.sweeps.iter().map(|(name, sweep)| (name.clone(), sweep.after.0.clone())).collect();
    Ok(Expansion {
        series: series::series(plan, &runs),
        pruned: HashMap::new(),
        left_out: HashMap::new(),
        runs,
        pools: making.pools,
        pending: making.pending,
        after,
        resources: resource::resources(plan),
        server_rounds: making.server_rounds,
    })
}

/// The inputs and the intermediate results of an expansion.
struct Making<'p> {
    resolver: resolve::Resolver<'p>,
    bytes: canonical::Bytes,
    server_rounds: BTreeSet<String>,
    pools: Vec<Pool>,
    pending: Vec<Pending>,
    known: Option<&'p Known>,
    gates: HashMap<String, gates::Stop>,
}

impl Making<'_> {
    fn sweep(&mut self, plan: &Plan, name: &str, sweep: &Sweep, runs: &mut Vec<PlannedRun>) -> Result<(), ExpandError> {
        let name: Arc<str> = name.into();
        let cells = matrix::cells(&name, sweep)?;
        let settled = taken::settle(&name, sweep, cells, self.known, self.gates.get(&*name));
        self.pending.extend(settled.pending);
        let (cells, evidence) = (settled.cells, settled.evidence);
        if sweep.chooses_runs() {
            return self.pools_of(name, sweep, plan.slo.as_ref(), (&cells, &evidence));
        }
        let compared = plan.compared(sweep).map(|compare| rounds(&cells, &compare.by).groups);
        let first = runs.len();
        runs.reserve_exact(cells.len() * sweep.repeats.at_most as usize);
        for repeat in 0..sweep.repeats.at_most {
            let order = match &compared {
                Some(groups) => order::rounds(plan.seed, &name, repeat, groups),
                None => order::block(plan.seed, &name, repeat, cells.len()),
            };
            for at in order {
                let spec = match self.resolver.run(sweep, &cells[at], repeat) {
                    Ok(spec) => Arc::new(RunSpec { taken: taken_by(&evidence, &cells[at]), ..spec }),
                    Err(_) => return Err(self.first_mistake(&name, sweep, &cells)),
                };
                let id = RunId::with(&mut self.bytes, &spec);
                runs.push(PlannedRun { sweep: name.clone(), cell: cells[at].clone(), repeat, spec, id });
            }
        }
        if compared.is_some_and(|groups| crosses_servers(&runs[first..], &groups, &cells)) {
            self.server_rounds.insert(name.to_string());
        }
        Ok(())
    }

    /// Creates the pools of a sweep whose runs are selected by measurements: one pool for all cells that
    /// differ only in the selected values.
    fn pools_of(
        &mut self,
        name: Arc<str>,
        sweep: &Sweep,
        slo: Option<&Slo>,
        (cells, evidence): (&[Cell], &Evidence),
    ) -> Result<(), ExpandError> {
        for (chooses, cells) in pool::groups(sweep, slo, cells) {
            let mut members = Vec::new();
            for wanted in pool::wanted(sweep, &chooses, &cells) {
                let spec = self.resolver.run(sweep, wanted.cell, wanted.repeat);
                let mut spec = spec.map_err(|mistake| ExpandError::new(&name, wanted.cell, mistake))?;
                spec.taken = taken_by(evidence, wanted.cell);
                if let Some(window) = wanted.window {
                    pool::lengthen(&mut spec, window);
                }
                if let Some(trial) = wanted.trial {
                    pool::at_rung(&mut spec, trial.rung);
                }
                let id = RunId::with(&mut self.bytes, &spec);
                let (cell, repeat, spec) = (wanted.cell.clone(), wanted.repeat, Arc::new(spec));
                let run = PlannedRun { sweep: name.clone(), cell, repeat, spec, id };
                members.push(Member { run, load: wanted.load, confirms: wanted.window.is_some(), trial: wanted.trial });
            }
            if let Some(mistake) = pool::too_small(&chooses, &members) {
                return Err(ExpandError::new(&name, &members[0].run.cell, mistake));
            }
            self.pools.push(Pool { sweep: name.clone(), chooses, members });
        }
        Ok(())
    }

    /// Returns the error of the first cell in the order of the plan, regardless of the order of the runs.
    fn first_mistake(&mut self, name: &str, sweep: &Sweep, cells: &[Cell]) -> ExpandError {
        let first = cells.iter().find_map(|cell| Some((cell, self.resolver.run(sweep, cell, 0).err()?)));
        let (cell, mistake) = first.expect("a cell with an error in one repeat has it in all");
        ExpandError::new(name, cell, mistake)
    }
}

/// The evidence for the loads of cells, by the ranks of the cells.
type Evidence = HashMap<Vec<u32>, Vec<TakenValue>>;

/// The evidence for the loads of a cell.
fn taken_by(evidence: &Evidence, cell: &Cell) -> Vec<TakenValue> {
    evidence.get(cell.rank()).cloned().unwrap_or_default()
}

/// Whether compared cells need different launched servers.
fn crosses_servers(runs: &[PlannedRun], groups: &[Vec<usize>], cells: &[Cell]) -> bool {
    if runs.iter().all(|run| run.spec.endpoint.launch.is_none()) {
        return false;
    }
    let of_cell: HashMap<&[u32], &EndpointSpec> =
        runs.iter().map(|run| (run.cell.rank(), &*run.spec.endpoint)).collect();
    let server = |at: &usize| of_cell.get(cells[*at].rank()).map(|spec| (&spec.name, &spec.launch));
    groups.iter().any(|group| group.windows(2).any(|pair| server(&pair[0]) != server(&pair[1])))
}

/// Merges the settings of a run that belongs to two sweeps: it is executed once, with the error policy and
/// the recordings that either of them requests.
fn keep_what_any_asks(runs: &mut [PlannedRun]) {
    let measured = |run: &&PlannedRun| run.spec.errors == ErrorPolicy::Measured;
    let asked: HashSet<RunId> = runs.iter().filter(measured).map(|run| run.id).collect();
    for run in runs.iter_mut().filter(|run| asked.contains(&run.id) && run.spec.errors != ErrorPolicy::Measured) {
        Arc::make_mut(&mut run.spec).errors = ErrorPolicy::Measured;
    }
    let keeps = |run: &&PlannedRun| run.spec.record.text;
    let asked: HashSet<RunId> = runs.iter().filter(keeps).map(|run| run.id).collect();
    if asked.is_empty() {
        return;
    }
    for run in runs.iter_mut().filter(|run| asked.contains(&run.id) && !run.spec.record.text) {
        Arc::make_mut(&mut run.spec).record.text = true;
    }
}

/// Rejects two sweeps with the same run but different generator settings: the run is executed once, so
/// one of them would not get its settings.
fn one_engine(runs: &[PlannedRun]) -> Result<(), ExpandError> {
    let Some(first) = runs.first().map(|run| run.spec.engine) else { return Ok(()) };
    if runs.iter().all(|run| run.spec.engine == first) {
        return Ok(());
    }
    let mut seen: HashMap<RunId, &PlannedRun> = HashMap::with_capacity(runs.len());
    for run in runs {
        let first = *seen.entry(run.id).or_insert(run);
        if first.spec.engine != run.spec.engine {
            let mistake = Mistake::OtherEngine { first: first.sweep.to_string() };
            return Err(ExpandError::new(&run.sweep, &run.cell, mistake));
        }
    }
    Ok(())
}
