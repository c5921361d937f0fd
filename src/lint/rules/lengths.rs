//! Rules about the lengths of prompts.

use super::super::finding::{Finding, Scope};
use super::super::view::{SweepView, View};
use crate::plan::Model;
use crate::plan::model::content::Resolved;

/// M023: lengths are given in tokens, but the model has no tokenizer.
pub(crate) fn estimated_lengths(view: &View) -> Vec<Finding> {
    let is_measured = |name: &str| {
        let has = |sweep: &SweepView| sweep.models.iter().any(|(used, _)| *used == name);
        view.sweeps.iter().any(|sweep| has(sweep) && sweep.real_endpoints().next().is_some() && declares(sweep))
    };
    let meant = view.plan.models.iter().filter(|(name, model)| model.tokenizer.is_none() && is_measured(name));
    let message = "without the model's tokenizer, prompt lengths are estimates: with common tokenizers, prompts are \
                   12-18 % shorter than declared; with small vocabularies, they are up to 36 % off";
    let remedy = "write `tokenizer: FILE` (the model's tokenizer.json, or the folder that contains it), \
                  or `tokenizer: server` if the server counts tokens";
    let finding = |(name, _): (&String, &Model)| Finding::of(Scope::Model(name.clone()), &[], message, remedy);
    meant.map(finding).collect()
}

/// Whether a sweep sends texts that are generated to a declared length. Texts of a data set keep their own
/// lengths.
fn declares(sweep: &SweepView) -> bool {
    let is_made = |scenario: &Resolved| scenario.content.data.is_none();
    sweep.scenarios.iter().any(|(_, scenario)| match &scenario.mix[..] {
        [] => is_made(scenario),
        members => members.iter().any(|member| is_made(&member.scenario)),
    })
}
