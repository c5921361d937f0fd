//! What prefix caches know beforehand.

use super::super::finding::Finding;
use super::super::view::{SweepView, View, steps};
use super::{listed, quoted};
use crate::plan::model::content::{Resolved, Reuse};
use crate::plan::{NonceMode, Plan, Step};

/// M009: scenarios that share text and scenarios that share none in one sweep.
pub(crate) fn mixed_cache(view: &View, sweep: &SweepView) -> Option<Finding> {
    let (alone, sharing) = sweep.by_reuse(view.plan);
    if alone.is_empty() || sharing.is_empty() {
        return None;
    }
    let verb = |names: &[&str]| if names.len() == 1 { "s" } else { "" };
    Some(sweep.finding(
        steps!["sweeps", sweep.name, "matrix", "scenario"],
        format!(
            "{} meet{} a warm prefix cache and {} meet{} a cold one, in one sweep",
            quoted(&sharing),
            verb(&sharing),
            quoted(&alone),
            verb(&alone),
        ),
        "put them into sweeps of their own, and never average over both",
    ))
}

/// M010: without a nonce every run of a plan sends the same prompts, whatever its scenario shares.
pub(crate) fn same_prompts(view: &View, sweep: &SweepView) -> Option<Finding> {
    let again = |(name, one): &(String, Resolved)| comes_again(view.plan, sweep, name, one);
    let differing: Vec<Again> = sweep.scenarios.iter().filter_map(again).collect();
    let first = differing.first()?;
    let names: Vec<String> = differing.iter().map(|one| one.told.clone()).collect();
    Some(sweep.finding(
        first.at.clone(),
        format!(
            "prompts of {} are to differ, and without a nonce every load point sends those of the one before",
            listed(&names)
        ),
        "write nonce: on, the default, or nonce: run to keep what recorded texts share; where the same prompt is \
                 meant, take scenario A1 or A2",
    ))
}

/// A scenario whose prompts are meant to differ, and come again.
struct Again {
    /// What it is called; of a mix whose other classes have a nonce, the classes that have none, and the mix.
    told: String,
    /// Where it is said that there is no nonce.
    at: Vec<Step>,
}

/// A scenario, if some of its requests are meant to differ and have no nonce.
fn comes_again(plan: &Plan, sweep: &SweepView, name: &str, scenario: &Resolved) -> Option<Again> {
    let is_meant = |class: &Resolved| class.content.reuse != Reuse::SamePrompt;
    let again = |class: &Resolved| is_meant(class) && sweep.has_nonce(plan, class, NonceMode::Off);
    if scenario.mix.is_empty() {
        return again(scenario).then(|| Again { told: quoted(&[name]), at: place_of_nonce(plan, sweep, &[name]) });
    }
    let classes: Vec<&str> =
        scenario.mix.iter().filter(|member| again(&member.scenario)).map(|member| member.name.as_str()).collect();
    let first = classes.first()?;
    let others = scenario.mix.iter().any(|member| is_meant(&member.scenario) && !again(&member.scenario));
    let told = if others { format!("{} in `{name}`", quoted(&classes)) } else { quoted(&[name]) };
    // What a mix says itself takes the place of what its classes say.
    Some(Again { told, at: place_of_nonce(plan, sweep, &[name, first]) })
}

/// Where it is said how far a nonce reaches: on the axis, by the first of `scenarios` that says it, itself or by one that it
/// starts from, or by the plan.
fn place_of_nonce(plan: &Plan, sweep: &SweepView, scenarios: &[&str]) -> Vec<Step> {
    if !sweep.values("nonce").is_empty() {
        return steps!["sweeps", sweep.name, "matrix", "nonce"];
    }
    for scenario in scenarios {
        let mut next = Some(*scenario);
        // A circle of bases is no longer than the table.
        for _ in 0..=plan.scenarios.len() {
            let Some((name, own)) = next.and_then(|name| plan.scenarios.get_key_value(name)) else { break };
            if own.nonce.is_some() {
                return steps!["scenarios", name.as_str(), "nonce"];
            }
            next = own.base.as_deref();
        }
    }
    steps!["nonce"]
}
