//! Rules about budgets.

use super::super::finding::{Finding, Scope};
use super::super::view::View;

/// M031: there is a budget, but no sweep is optional, so none can be skipped.
pub(crate) fn nothing_optional(view: &View) -> Vec<Finding> {
    let has_optional = view.plan.sweeps.values().any(|sweep| sweep.optional);
    if view.plan.budget.is_none() || has_optional {
        return Vec::new();
    }
    let message = "a budget is enforced by skipping `optional` sweeps, but no sweep is optional, so all of them run, even \
                   beyond the budget";
    let remedy = "write `optional: true` in the sweeps that can be skipped, and declare the least important one last";
    vec![Finding::of(Scope::Plan, &["budget"], message, remedy)]
}
