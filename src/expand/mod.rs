//! Plan → RunSpecs: matrix, order, identity.
//!
//! The plan's checker has seen the plan before: names are known, aliases replaced, the axes `endpoint`, `model` and
//! `scenario` filled in. What can still be wrong is an [`ExpandError`], never a panic.

mod axes;
pub mod error;
pub mod explicit;
pub mod identity;
pub mod matrix;
pub mod order;
pub mod origin;
pub mod resolve;
pub mod spec;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use error::{ExpandError, Mistake};
pub use explicit::explicit;
pub use identity::{Canonical, Difference, RunId, canonical, differences};
pub use matrix::Cell;
pub use origin::origin;
pub use spec::*;

use crate::plan::{Endpoint, Plan, Sweep, Table};

/// All runs of a plan, in the order in which they are executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The runs; two sweeps may hold the same run, with the same id.
    pub runs: Vec<PlannedRun>,
    /// For each sweep, in declared order, the sweeps it comes after.
    pub after: Table<Vec<String>>,
    /// For each endpoint, what its runs occupy: runs on one resource never overlap.
    pub resources: Table<String>,
}

/// One run as the plan asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRun {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// The cell: a value for each axis, in declared order.
    pub cell: Cell,
    /// Which repeat of the cell, from 0.
    pub repeat: u32,
    /// The run with every default explicit.
    pub spec: Arc<RunSpec>,
    /// Its identity.
    pub id: RunId,
}

/// All runs of `plan`: sweeps in declared order, in each a block per repeat that holds every cell once, shuffled.
pub fn expand(plan: &Plan) -> Result<Expansion, ExpandError> {
    let mut runs = Vec::new();
    for (name, sweep) in &plan.sweeps {
        expand_sweep(plan, name, sweep, &mut runs)?;
    }
    let after = plan.sweeps.iter().map(|(name, sweep)| (name.clone(), sweep.after.0.clone())).collect();
    let resource = |name: &String, endpoint: &Endpoint| endpoint.resource.clone().unwrap_or_else(|| name.clone());
    let resources = plan.endpoints.iter().map(|(name, endpoint)| (name.clone(), resource(name, endpoint))).collect();
    Ok(Expansion { runs, after, resources })
}

fn expand_sweep(plan: &Plan, name: &str, sweep: &Sweep, runs: &mut Vec<PlannedRun>) -> Result<(), ExpandError> {
    let name: Arc<str> = name.into();
    let cells = matrix::cells(sweep)
        .into_iter()
        .map(|cell| match resolve::resolve(plan, sweep, &cell) {
            Ok(spec) => Ok((cell, spec)),
            Err(mistake) => Err(ExpandError::new(&name, &cell, mistake)),
        })
        .collect::<Result<Vec<_>, _>>()?;
    for repeat in 0..sweep.repeats {
        for at in order::block(plan.seed, &name, repeat, cells.len()) {
            let (cell, spec) = &cells[at];
            let spec = Arc::new(RunSpec { repeat, ..spec.clone() });
            let id = RunId::of(&spec);
            runs.push(PlannedRun { sweep: name.clone(), cell: cell.clone(), repeat, spec, id });
        }
    }
    Ok(())
}
