//! Checks of scenarios: bases must exist and lead to a built-in scenario, and fields must be within their
//! range.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::axis::{self, AXES};
use crate::plan::model::content::{Reuse, built_in, resolve};
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::length_field::LengthField;
use crate::plan::model::plan::Plan;
use crate::plan::model::sampling::PARAMETERS;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::table::Table;

impl Checker<'_> {
    /// Checks every scenario of the plan.
    pub(super) fn scenarios(&mut self, plan: &Plan) {
        let endpoints: Vec<&Endpoint> = plan.endpoints.values().collect();
        for (name, scenario) in &plan.scenarios {
            if built_in(name).is_some() {
                let message =
                    format!("`{name}` is a built-in scenario; another scenario with that name would mislead readers");
                let remedy = format!("rename your scenario, and write `base: {name}` in it");
                let at = steps!["scenarios", name.as_str()];
                self.report_key(&at, Diagnostic::new(Code::BuiltInName, message).remedy(remedy));
            }
            self.base(name, scenario, &plan.scenarios);
            self.fields(name, scenario);
            self.asked(name, scenario);
            self.without_tokens(name, scenario);
            self.headers(&steps!["scenarios", name.as_str(), "headers"], &scenario.headers, &endpoints);
            self.turns(name, scenario, &plan.scenarios);
            self.extra_of_scenario(name, scenario);
            self.mix(name, scenario, plan);
            self.lengths(name, scenario, &plan.scenarios);
            self.sharing(name, scenario, plan);
            self.talk(name, scenario, plan);
            self.trace(name, scenario, plan);
            self.data(name, scenario, plan);
            self.profile_of(name, scenario, plan);
        }
    }

    fn base(&mut self, name: &str, scenario: &Scenario, table: &Table<Scenario>) {
        let Some(base) = &scenario.base else { return };
        let at = steps!["scenarios", name, "base"];
        let names = self.names("scenarios");
        if !names.contains(&base.as_str()) {
            let others: Vec<&str> = names.into_iter().filter(|known| *known != name).collect();
            return self.unknown_name(&at, "scenario", base, &others);
        }
        if let Some(circle) = circle_of_bases(name, table) {
            let message = format!("scenario `{name}` is based on itself: {}", circle.join(" → "));
            let remedy = "let one of these scenarios start from a built-in one, like `base: B1`";
            self.report(&at, Diagnostic::new(Code::Circle, message).remedy(remedy));
        }
    }

    fn fields(&mut self, name: &str, scenario: &Scenario) {
        for (field, value) in given(scenario) {
            let Some(kind) = axis::kind(field).filter(|kind| !kind.takes(&value)) else { continue };
            let message = format!("`{field}` must be {}, not {value}", kind.wanted());
            let at = steps!["scenarios", name, field];
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(kind.remedy(&value)));
        }
    }

    /// Reports a length that is requested twice, and an empty model id.
    fn asked(&mut self, name: &str, scenario: &Scenario) {
        if LengthField::ALL.iter().all(|field| scenario.tokens_under(*field).is_some()) {
            let [usual, unusual] = LengthField::KEYS;
            let message =
                format!("`{usual}` and `{unusual}` of scenario `{name}` both set the number of requested tokens");
            let remedy = "keep one of the two fields: the field that you keep determines the name under which the \
                          length is sent";
            let mut diagnostic = Diagnostic::new(Code::Contradiction, message).remedy(remedy);
            diagnostic
                .related
                .extend(self.key_of(&steps!["scenarios", name, usual], &format!("`{usual}` is set here")));
            self.report_key(&steps!["scenarios", name, unusual], diagnostic);
        }
        if scenario.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
            let message = format!("`model` of scenario `{name}` is empty");
            let remedy = "write the id that the server knows, or remove `model` to send the model's own id";
            self.empty(&steps!["scenarios", name, "model"], message, remedy);
        }
    }

    /// Reports fields about generated tokens in a scenario whose responses are vectors or scores.
    fn without_tokens(&mut self, name: &str, scenario: &Scenario) {
        const OF_TOKENS: [&str; 8] =
            ["turns", "think", "history", "sessions", "context_limit", "stream", "ignore_eos", "stop"];
        let Some(texts) = ["inputs", "documents"].into_iter().find(|field| scenario.says(field)) else { return };
        let answered = if texts == "inputs" { "vectors" } else { "scores" };
        let parameters = PARAMETERS.iter().map(|parameter| parameter.name);
        for field in
            LengthField::KEYS.into_iter().chain(OF_TOKENS).chain(parameters).filter(|field| scenario.says(field))
        {
            let message = format!(
                "`{field}` has no effect in scenario `{name}`: its requests have `{texts}`, and the responses are \
                 {answered}"
            );
            let remedy = format!("remove the field, or remove `{texts}`");
            let at = steps!["scenarios", name, field];
            self.report_key(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
        if texts == "inputs" && scenario.says("documents") {
            let message =
                format!("scenario `{name}` has both `inputs` and `documents`, but a request can have only one of them");
            let remedy = "keep `inputs` for `api: embeddings`, `documents` for `api: rerank`";
            let at = steps!["scenarios", name, "documents"];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn turns(&mut self, name: &str, scenario: &Scenario, table: &Table<Scenario>) {
        if scenario.turns.is_some_and(|turns| turns > 1) && has_no_turns(name, table) {
            let message =
                format!("`turns` has no effect in scenario `{name}`, because the scenario is not a conversation");
            let at = steps!["scenarios", name, "turns"];
            self.report(
                &at,
                Diagnostic::new(Code::NoEffect, message)
                    .remedy("start from a conversation, for example with `base: D`"),
            );
        }
    }
}

/// Whether a scenario is known not to be a conversation.
pub(super) fn has_no_turns(name: &str, table: &Table<Scenario>) -> bool {
    resolve(name, table).is_some_and(|scenario| scenario.content.reuse != Reuse::Conversation)
}

/// The chain of bases from `name` back to itself; `None` if there is no such cycle.
fn circle_of_bases<'a>(name: &'a str, table: &'a Table<Scenario>) -> Option<Vec<&'a str>> {
    let mut chain = vec![name];
    while let Some(base) = table.get(*chain.last()?).and_then(|scenario| scenario.base.as_deref()) {
        chain.push(base);
        if base == name {
            // In `A1: { base: A1 }`, the base is the built-in scenario, so this is not a cycle. The reserved
            // name is reported as a separate error.
            return (chain.len() > 2 || built_in(name).is_none()).then_some(chain);
        }
        if chain.len() > table.len() {
            return None;
        }
    }
    None
}

/// The numbers that a scenario sets, as values of the axes with the same names.
fn given(scenario: &Scenario) -> Vec<(&'static str, Scalar)> {
    let Ok(serde_json::Value::Object(said)) = serde_json::to_value(scenario) else { return Vec::new() };
    let numbers = AXES.iter().filter(|(_, kind, _)| kind.is_number());
    let given = numbers.filter_map(|(name, ..)| Some((*name, said.get(*name)?)));
    given.filter_map(|(name, value)| Some((name, serde_json::from_value(value.clone()).ok()?))).collect()
}
