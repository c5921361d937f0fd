//! What only the whole plan shows: names that nothing has, values outside their range, fields that exclude each other.
//! Every mistake is addressed by its path in the plan; the tree says where that is written.

mod arrivals;
mod checker;
mod compare;
mod condition;
mod data;
mod endpoint;
mod extra;
mod head;
mod headers;
mod lengths;
mod limits;
mod mix;
mod names;
mod pairs;
mod prefix;
mod profiled;
mod rules;
mod scenario;
mod sweep;
mod talk;
mod text_axes;
mod trace;
mod values;

use crate::plan::check::checker::Checker;
use crate::plan::diagnostic::error::Diagnostic;
use crate::plan::model::plan::Plan;
use crate::plan::text::tree::Node;

/// Checks a plan that was read from `tree`, and gives its matrices their one form: axes under their first names, those
/// that follow from the plan written out.
pub(super) fn check(plan: &mut Plan, tree: &Node) -> Vec<Diagnostic> {
    let mut checker = Checker::new(tree);
    checker.head(plan);
    checker.endpoints(plan);
    checker.models(plan);
    checker.scenarios(plan);
    checker.limits(plan);
    checker.sweeps(plan);
    checker.comparisons(plan);
    checker.found
}
