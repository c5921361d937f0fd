//! Checks of text that prompts share: lengths must be within their range, and every setting must have an
//! effect.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::content::{Reuse, resolve};
use crate::plan::model::nonce::NonceMode;
use crate::plan::model::plan::Plan;
use crate::plan::model::prefix::{Prefix, PrefixOrder};
use crate::plan::model::scenario::Scenario;

impl Checker<'_> {
    /// Checks `prefix` and `cache` of a scenario.
    pub(super) fn sharing(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        if let Some(prefix) = &scenario.prefix {
            self.prefix(name, prefix, plan);
        }
        self.cold(name, scenario, plan);
    }

    /// Reports a cold scenario whose prompts do not each have their own nonce, if the scenario itself sets
    /// `cache` or `nonce`.
    fn cold(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        let field = match (scenario.nonce.is_some(), scenario.cache.is_some()) {
            (true, _) => "nonce",
            (false, true) => "cache",
            (false, false) => return,
        };
        // A `nonce` axis overrides the scenario's setting, so cells are then checked separately.
        if plan.sweeps.values().any(|sweep| !sweep.values("nonce").is_empty()) {
            return;
        }
        let Some(resolved) = resolve(name, &plan.scenarios) else { return };
        let cold = resolved.classes().filter(|class| !class.content.cache.is_warm());
        if let Some(nonce) = cold.map(|class| class.nonce.unwrap_or(plan.nonce)).find(|nonce| *nonce != NonceMode::On) {
            let message = format!(
                "`cache: cold` of scenario `{name}` needs `nonce: on`, but the scenario has `nonce: {}`; each cold \
                 prompt must begin with its own nonce",
                nonce.name()
            );
            let remedy = "write `nonce: on` in the scenario, or remove `cache: cold`";
            let at = steps!["scenarios", name, field];
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn prefix(&mut self, name: &str, prefix: &Prefix, plan: &Plan) {
        let at = |field: &str| steps!["scenarios", name, "prefix", field];
        for (field, value, (least, most)) in
            [("tokens", prefix.tokens, Prefix::TOKENS), ("groups", prefix.groups, Prefix::GROUPS)]
        {
            let wanted = format!("a whole number from {least} to {most}");
            let wrong = Some(value).filter(|value| !(least..=most).contains(value));
            self.outside(&steps!["scenarios", name, "prefix"], field, &wanted, wrong);
        }
        let resolved = resolve(name, &plan.scenarios);
        if resolved.is_some_and(|resolved| resolved.content.reuse == Reuse::SamePrompt) {
            let message = format!("all requests of scenario `{name}` are identical, so a shared text has no effect");
            let remedy = "start from a scenario whose prompts differ, for example with `base: B1`";
            let at = steps!["scenarios", name, "prefix"];
            self.report(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
        if prefix.order == PrefixOrder::Tile && prefix.groups == 1 {
            let message = format!(
                "scenario `{name}` cycles through one text (`order: tile`), which fits into every \
                                   cache"
            );
            let remedy = "write more `groups` than the cache can hold: groups × tokens must exceed its size in tokens";
            self.report(&at("groups"), Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }
}
