//! Checks that need the whole plan: unknown names, values outside their range, conflicting fields. Each check
//! reports an error at a path in the plan, and the tree maps this path to a place in the text.

mod access;
mod arrivals;
mod budget;
mod checker;
mod compare;
mod condition;
mod data;
mod endpoint;
mod extra;
mod head;
mod headers;
mod hooks;
mod launch;
mod lengths;
mod limits;
mod mix;
mod names;
mod never;
mod optimize;
mod pairs;
mod prefix;
mod profiled;
mod repeats;
mod resources;
mod rules;
mod scenario;
mod search;
mod secret;
mod sweep;
mod taken;
mod talk;
mod telemetry;
mod text_axes;
mod trace;
mod values;

use crate::plan::check::checker::{Checker, MOST_VALUES};
use crate::plan::diagnostic::error::Diagnostic;
use crate::plan::model::matrix::Axis;
use crate::plan::model::plan::{Plan, ResolvedPlan};
use crate::plan::text::tree::Node;

/// Whether the axes of a plan have too many values. This is reported where the axes are checked; no earlier
/// check may expand them.
fn has_too_many_values(plan: &Plan) -> bool {
    let weights = plan.sweeps.values().flat_map(|sweep| sweep.matrix.values()).map(Axis::weight);
    weights.fold(0, usize::saturating_add) > MOST_VALUES
}

/// Checks a plan as written in `tree`, with the files that it names, and resolves it. The resolved plan is
/// valid only if there are no diagnostics. `allow_outside` allows files outside the plan's folder.
pub(super) fn check(plan: &Plan, tree: &Node, allow_outside: bool) -> (ResolvedPlan, Vec<Diagnostic>) {
    let mut checker = Checker::new(tree, allow_outside);
    checker.head(plan);
    checker.endpoints(plan);
    if !has_too_many_values(plan) {
        checker.launches(plan);
        checker.hooks(plan);
    }
    checker.models(plan);
    checker.scenarios(plan);
    checker.limits(plan);
    checker.budget(plan);
    let resolved = Plan { sweeps: checker.sweeps(plan), ..plan.clone() };
    let resolved = checker.comparisons(resolved);
    (ResolvedPlan::new(resolved), checker.found)
}
