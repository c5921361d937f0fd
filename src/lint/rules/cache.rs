//! Rules about the prefix cache.

use super::super::finding::Finding;
use super::super::view::{SweepView, View, steps};
use super::{listed, quoted};
use crate::plan::model::content::{Resolved, Reuse};
use crate::plan::{NonceMode, Plan, Step};

/// M009: one sweep contains both scenarios whose requests share text and scenarios whose requests share
/// none.
pub(crate) fn mixed_cache(view: &View, sweep: &SweepView) -> Option<Finding> {
    let (alone, sharing) = sweep.by_reuse(view.plan);
    if alone.is_empty() || sharing.is_empty() {
        return None;
    }
    let verb = |names: &[&str]| if names.len() == 1 { "s" } else { "" };
    Some(sweep.finding(
        steps!["sweeps", sweep.name, "matrix", "scenario"],
        format!(
            "{} run{} against a warm prefix cache and {} run{} against a cold one, in the same sweep",
            quoted(&sharing),
            verb(&sharing),
            quoted(&alone),
            verb(&alone),
        ),
        "put these scenarios into separate sweeps, and never average their results together",
    ))
}

/// M010: without a nonce, every run of a plan sends the same prompts, even if the scenario's prompts
/// should differ.
pub(crate) fn same_prompts(view: &View, sweep: &SweepView) -> Option<Finding> {
    let again = |(name, one): &(String, Resolved)| comes_again(view.plan, sweep, name, one);
    let differing: Vec<Again> = sweep.scenarios.iter().filter_map(again).collect();
    let first = differing.first()?;
    let names: Vec<String> = differing.iter().map(|one| one.told.clone()).collect();
    Some(sweep.finding(
        first.at.clone(),
        format!(
            "prompts of {} should differ, but without a nonce every load point repeats the prompts of the previous one",
            listed(&names)
        ),
        "write `nonce: on` (the default), or `nonce: run` to keep the text that recorded prompts share; to repeat one \
         prompt on purpose, use scenario A1 or A2",
    ))
}

/// A scenario whose prompts should differ but repeat.
struct Again {
    /// The name of the scenario in messages; for a mix in which only some classes have a nonce, the
    /// classes without a nonce and the mix.
    told: String,
    /// The place where the nonce is turned off.
    at: Vec<Step>,
}

/// Returns the scenario if some of its requests should differ but have no nonce; otherwise `None`.
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
    // A mix's own setting overrides those of its classes.
    Some(Again { told, at: place_of_nonce(plan, sweep, &[name, first]) })
}

/// The place of the nonce setting: on the axis, in the first of `scenarios` that sets it, directly or
/// through its bases, or in the plan.
fn place_of_nonce(plan: &Plan, sweep: &SweepView, scenarios: &[&str]) -> Vec<Step> {
    if !sweep.values("nonce").is_empty() {
        return steps!["sweeps", sweep.name, "matrix", "nonce"];
    }
    for scenario in scenarios {
        let mut next = Some(*scenario);
        // The loop ends even if bases form a cycle, because a cycle is no longer than the table.
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
