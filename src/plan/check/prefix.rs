//! What prompts share: lengths within their range, and nothing that could not have an effect.

use super::{Checker, out_of_range, steps};
use crate::plan::error::{Code, Diagnostic};
use crate::plan::model::{Plan, Prefix, PrefixOrder, Scenario};
use crate::plan::scenario::{Reuse, resolve};

impl Checker<'_> {
    /// Checks `prefix` and `cache` of a scenario.
    pub(super) fn sharing(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        if let Some(prefix) = &scenario.prefix {
            self.prefix(name, prefix, plan);
        }
        if scenario.cache.is_some_and(|cache| !cache.is_warm()) && !plan.nonce.is_on() {
            let message = format!("`cache: cold` of scenario `{name}` needs the nonce, and the plan has `nonce: off`");
            let remedy = "remove `nonce: off`: a cold prompt opens with a nonce of its own";
            let at = steps!["scenarios", name, "cache"];
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn prefix(&mut self, name: &str, prefix: &Prefix, plan: &Plan) {
        let at = |field: &str| steps!["scenarios", name, "prefix", field];
        for (field, value, (least, most)) in
            [("tokens", prefix.tokens, Prefix::TOKENS), ("groups", prefix.groups, Prefix::GROUPS)]
        {
            if !(least..=most).contains(&value) {
                let wanted = format!("a whole number from {least} to {most}");
                self.report(&at(field), out_of_range(field, &wanted, value));
            }
        }
        let resolved = resolve(name, &plan.scenarios);
        if resolved.is_some_and(|resolved| resolved.content.reuse == Reuse::SamePrompt) {
            let message = format!("every request of scenario `{name}` is the same: a shared text adds nothing to it");
            let remedy = "start from a scenario whose prompts differ: base: B1";
            let at = steps!["scenarios", name, "prefix"];
            self.report(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
        if prefix.order == PrefixOrder::Tile && prefix.groups == 1 {
            let message = format!("scenario `{name}` tiles over one text, which every cache holds");
            let remedy = "write more `groups` than the cache holds: groups × tokens above its size in tokens";
            self.report(&at("groups"), Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }
}
