//! What prefix caches know beforehand.

use super::super::view::{SweepView, View, steps};
use super::super::{Finding, Scope};
use super::quoted;
use crate::plan::scenario::Reuse;

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
    if view.plan.nonce.is_on() {
        return Vec::new();
    }
    let finding = |sweep: &SweepView| {
        let meant = |reuse: Reuse| reuse == Reuse::SamePrompt;
        let differing: Vec<&str> = sweep
            .scenarios
            .iter()
            .filter(|(_, one)| !meant(one.content.reuse))
            .map(|(name, _)| name.as_str())
            .collect();
        (!differing.is_empty()).then(|| Finding {
            scope: Scope::Sweep(sweep.name.to_owned()),
            at: steps!["nonce"],
            message: format!(
                "prompts of {} are to differ, and without a nonce every load point sends those of the one before",
                quoted(&differing)
            ),
            remedy: "write nonce: on, the default; where the same prompt is meant, take scenario A1 or A2".to_owned(),
        })
    };
    view.sweeps.iter().filter_map(finding).collect()
}
