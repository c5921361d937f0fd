//! Rejects loads that the plan's workers cannot send together, and reports their place in the plan.

use crate::expand::error::Mistake;
use crate::expand::resolve::workers;
use crate::expand::{ExpandError, expand};
use crate::plan::{Code, Loaded, PlanErrors, Step};

/// Returns the error that `run` would report for the workers of a plan, with its place; `None` if `run`
/// would accept the workers.
pub(super) fn refused(loaded: &Loaded) -> Option<PlanErrors> {
    let plan = &loaded.plan;
    plan.sweeps.values().find(|sweep| workers(plan, sweep).is_some_and(|workers| workers.count > 1))?;
    let Err(ExpandError { sweep, mistake: Mistake::Undivided { workers, why, remedy }, .. }) = expand(plan) else {
        return None;
    };
    let what = format!("{workers} workers cannot share the load of sweep `{sweep}`: {why}");
    let of_sweep = plan.sweeps.get(&sweep).is_some_and(|sweep| sweep.engine.workers.is_some());
    let path: Vec<Step> = match of_sweep {
        true => ["sweeps", &sweep, "engine", "workers"].map(Step::from).into(),
        false => ["engine", "workers"].map(Step::from).into(),
    };
    Some(loaded.refuse(&path, Code::Contradiction, what, remedy))
}
