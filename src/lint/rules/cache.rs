//! What prefix caches know beforehand.

use super::super::view::{SweepView, View, steps};
use super::super::{Finding, Scope};
use super::quoted;
use crate::plan::scenario::{Resolved, Reuse};
use crate::plan::{NonceMode, Plan, Scalar, Step};

/// M009: scenarios that share text and scenarios that share none in one sweep.
pub fn mixed_cache(view: &View) -> Vec<Finding> {
    let finding = |sweep: &SweepView| {
        let (alone, sharing) = sweep.by_reuse();
        if alone.is_empty() || sharing.is_empty() {
            return None;
        }
        let verb = |names: &[&str]| if names.len() == 1 { "s" } else { "" };
        Some(Finding {
            scope: Scope::Sweep(sweep.name.to_owned()),
            at: steps!["sweeps", sweep.name, "matrix", "scenario"],
            message: format!(
                "{} meet{} a warm prefix cache and {} meet{} a cold one, in one sweep",
                quoted(&sharing),
                verb(&sharing),
                quoted(&alone),
                verb(&alone),
            ),
            remedy: "put them into sweeps of their own, and never average over both".to_owned(),
        })
    };
    view.sweeps.iter().filter_map(finding).collect()
}

/// M010: without a nonce every run of a plan sends the same prompts, whatever its scenario shares.
pub fn same_prompts(view: &View) -> Vec<Finding> {
    let finding = |sweep: &SweepView| {
        let differing: Vec<&(String, Resolved)> =
            sweep.scenarios.iter().filter(|(_, one)| comes_again(view.plan, sweep, one)).collect();
        let (first, _) = differing.first()?;
        let names: Vec<&str> = differing.iter().map(|(name, _)| name.as_str()).collect();
        Some(Finding {
            scope: Scope::Sweep(sweep.name.to_owned()),
            at: place_of_nonce(view.plan, sweep, first),
            message: format!(
                "prompts of {} are to differ, and without a nonce every load point sends those of the one before",
                quoted(&names)
            ),
            remedy: "write nonce: on, the default, or nonce: run to keep what recorded texts share; where the same prompt is \
                     meant, take scenario A1 or A2"
                .to_owned(),
        })
    };
    view.sweeps.iter().filter_map(finding).collect()
}

/// Whether some of its requests are meant to differ and have no nonce.
fn comes_again(plan: &Plan, sweep: &SweepView, scenario: &Resolved) -> bool {
    let on_axis = sweep.values("nonce");
    let off = Scalar::Text(NonceMode::Off.name().to_owned());
    let is_off = |class: &Resolved| match on_axis.is_empty() {
        true => class.nonce.unwrap_or(plan.nonce) == NonceMode::Off,
        false => on_axis.contains(&off),
    };
    scenario.classes().any(|class| class.content.reuse != Reuse::SamePrompt && is_off(class))
}

/// Where it is said how far the nonce of a scenario reaches: on the axis, by the scenario, by one that it starts from, or by the
/// plan.
fn place_of_nonce(plan: &Plan, sweep: &SweepView, scenario: &str) -> Vec<Step> {
    if !sweep.values("nonce").is_empty() {
        return steps!["sweeps", sweep.name, "matrix", "nonce"];
    }
    let mut next = Some(scenario);
    // A circle of bases is no longer than the table.
    for _ in 0..=plan.scenarios.len() {
        let Some((name, own)) = next.and_then(|name| plan.scenarios.get_key_value(name)) else { break };
        if own.nonce.is_some() {
            return steps!["scenarios", name.as_str(), "nonce"];
        }
        next = own.base.as_deref();
    }
    steps!["nonce"]
}
