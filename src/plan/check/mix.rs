//! Checks of mixes: their scenarios must exist, must not be mixes themselves and must agree on some settings,
//! and their shares must add up to 1 or be whole numbers.

use super::checker::{Checker, out_of_range, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::content::{Resolved, resolve};
use crate::plan::model::error_policy::ErrorPolicy;
use crate::plan::model::mix::{MOST_PARTS, MixPart, weights};
use crate::plan::model::plan::Plan;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::talk::{Sessions, Talk};
use crate::plan::text::tree::Step;
use crate::units::Decimal;

/// A function that returns a true-or-false setting of a scenario; `None` if the scenario does not set it.
type Said = fn(&Resolved) -> Option<bool>;

impl Checker<'_> {
    /// Checks the mix of a scenario.
    pub(super) fn mix(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        let parts = &scenario.mix;
        let at = steps!["scenarios", name, "mix"];
        if parts.is_empty() {
            return;
        }
        if scenario.base.is_some() {
            let message =
                format!("scenario `{name}` has both a `mix` and a `base`, but a mix is based on its scenarios");
            let remedy = "remove `base`; fields next to `mix` apply to all of its scenarios";
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if parts.len() > MOST_PARTS {
            self.report_key(&at, out_of_range("mix", &format!("at most {MOST_PARTS} scenarios"), parts.len()));
        }
        for (index, part) in parts.iter().enumerate() {
            let at = [&at[..], &steps![index, "scenario"]].concat();
            self.part(&at, &part.scenario, &parts[..index], plan);
        }
        self.shares(&at, parts);
        self.alike(&at, name, plan);
    }

    fn part(&mut self, at: &[Step], scenario: &str, before: &[MixPart], plan: &Plan) {
        let names = self.names("scenarios");
        if !names.contains(&scenario) {
            return self.unknown_name(at, "scenario", scenario, &names);
        }
        let is_mix = |name: &str| plan.scenarios.get(name).is_some_and(|own| !own.mix.is_empty());
        let mut base = scenario;
        // The loop ends even if bases form a cycle, because a cycle is no longer than the table.
        for _ in 0..=plan.scenarios.len() {
            if is_mix(base) {
                let message = format!("`{scenario}` is a mix itself, and a mix cannot contain mixes");
                let remedy = "name the scenarios of that mix here, each with its share of the whole";
                return self.report(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
            base = plan.scenarios.get(base).and_then(|own| own.base.as_deref()).unwrap_or_default();
        }
        let talk = resolve(scenario, &plan.scenarios).map_or(Talk::PLAIN, |resolved| resolved.content.talk);
        if talk.think.is_some() || talk.sessions == Sessions::Open {
            let field = if talk.think.is_some() { "think" } else { "sessions: open" };
            let message = format!(
                "`{scenario}` has `{field}`, which is not possible in a mix: the scenario is drawn for each request, \
                 not for each user"
            );
            let remedy = "name a scenario without this field, or measure the conversations in a separate sweep";
            self.report(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if before.iter().any(|part| part.scenario == scenario) {
            let message = format!("`{scenario}` is in this mix twice");
            let remedy = "keep one of the two entries, with the sum of both shares";
            self.report(at, Diagnostic::new(Code::DuplicateValue, message).remedy(remedy));
        }
    }

    /// Checks that shares are positive, and that they either add up to 1 or are all whole numbers.
    fn shares(&mut self, at: &[Step], parts: &[MixPart]) {
        let mut sound = true;
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.share.is_positive()) {
            let at = [at, &steps![index, "share"]].concat();
            self.report(&at, out_of_range("share", "a number above 0", part.share));
            sound = false;
        }
        let whole = parts.iter().all(|part| part.share.parts().1 == 0);
        let sum = parts.iter().try_fold(Decimal::default(), |sum, part| sum.checked_add(part.share));
        if !sound || whole || (sum == Some(Decimal::from(1)) && weights(parts).is_some()) {
            return;
        }
        let sum = sum.map_or_else(String::new, |sum| format!(": they add up to {sum}"));
        let message = format!("shares of a mix must add up to 1, or be whole numbers{sum}");
        let remedy = "write shares that add up to 1, like 0.8 and 0.2, or whole numbers, like 2 and 1";
        self.report_key(at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
    }

    /// Checks that all scenarios of a mix agree on the settings that apply to a whole run.
    fn alike(&mut self, at: &[Step], name: &str, plan: &Plan) {
        let Some(mixed) = resolve(name, &plan.scenarios) else { return };
        let differ = |field: Said| mixed.mix.windows(2).any(|two| field(&two[0].scenario) != field(&two[1].scenario));
        let fields: [(&str, Said); 3] = [
            ("stream", |one| one.stream),
            ("ignore_eos", |one| one.ignore_eos),
            ("errors", |one| one.errors.map(|errors| errors == ErrorPolicy::Measured)),
        ];
        for (field, _) in fields.into_iter().filter(|(_, of)| differ(*of)) {
            let message = format!(
                "the scenarios of this mix differ in `{field}`, which must be the same for all requests of a run"
            );
            let remedy = format!("write `{field}` next to `mix`, where it applies to all scenarios of the mix");
            self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }
}
