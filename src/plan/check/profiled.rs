//! Checks of profiles: the fields next to a profile must be usable, and values that the profile does not
//! contain must be set.

use super::checker::{Checker, is_not_positive, steps};
use super::trace::says_trace;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::content::{Reuse, resolve};
use crate::plan::model::plan::Plan;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::sweep::Sweep;

impl Checker<'_> {
    /// Checks `profile` of a scenario. The content of its file was checked when the plan was loaded.
    pub(super) fn profile_of(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        let Some(file) = &scenario.profile else { return };
        let at = steps!["scenarios", name, "profile"];
        self.outside(&at, "speed", "a number above 0", Some(file.speed).filter(is_not_positive));
        for (field, given) in [("trace", scenario.trace.is_some()), ("mix", !scenario.mix.is_empty())] {
            if given {
                let message = format!("`profile` and `{field}` of scenario `{name}` both determine what is sent");
                let diagnostic = Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two");
                self.report_key(&at, diagnostic.with(self.key_of(&steps!["scenarios", name, field], "also set here")));
                return;
            }
        }
        let resolved = resolve(name, &plan.scenarios).map(|resolved| resolved.content);
        let base = resolved.map_or(Reuse::None, |content| content.reuse);
        if base == Reuse::SamePrompt {
            let message =
                format!("all requests of scenario `{name}` are identical, but the requests of a profile differ");
            let remedy = "start from a scenario whose prompts differ, for example with `base: B1`";
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        let without = file.found().map_or((0, 0), |found| found.without_output);
        if without.0 > 0 && scenario.asked_tokens().is_none() && scenario.lengths.is_none() {
            let (untold, all) = without;
            let message = format!(
                "the profile `{}` has no response length for {untold} of its {all} requests",
                file.file.written()
            );
            let remedy = "set the number of tokens to request, like output_tokens: 256";
            self.report(&at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
    }
}

/// Whether every scenario of a sweep has its own rate from a trace or a profile, even if the file cannot be
/// read.
pub(super) fn brings_load(plan: &Plan, sweep: &Sweep) -> bool {
    let unread = |name: &str| {
        let file = plan.scenarios.get(name).and_then(|scenario| scenario.profile.as_ref());
        file.is_some_and(|file| file.found().is_none())
    };
    let records = |name: &str| {
        let recorded = resolve(name, &plan.scenarios).and_then(|resolved| resolved.arrivals);
        says_trace(name, &plan.scenarios) || unread(name) || recorded.is_some()
    };
    let scenarios = sweep.values("scenario");
    !scenarios.is_empty() && scenarios.iter().all(|value| records(&value.to_string()))
}
