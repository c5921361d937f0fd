//! Checks of conversations: settings must have an effect, think-time distributions must be valid, and
//! the first turn must fit into the context.

use super::checker::{Checker, steps};
use super::condition::CheckedSweep;
use super::scenario::has_no_turns;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::matrix::grid::Want;
use crate::plan::model::content::{Reuse, resolve};
use crate::plan::model::plan::Plan;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::talk::Sessions;
use crate::plan::text::tree::Step;

impl Checker<'_> {
    /// Checks the conversation fields of a scenario.
    pub(super) fn talk(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        let at = |field: &str| steps!["scenarios", name, field];
        let Scenario { think, history, sessions, context_limit, context_cut, .. } = scenario;
        let given = [
            (think.is_some(), "think"),
            (is_other(history), "history"),
            (is_other(sessions), "sessions"),
            (context_limit.is_some(), "context_limit"),
            (is_other(context_cut), "context_cut"),
        ];
        if has_no_turns(name, &plan.scenarios) {
            for (_, field) in given.iter().filter(|(given, _)| *given) {
                let message =
                    format!("`{field}` has no effect in scenario `{name}`, because the scenario is not a conversation");
                let remedy = "start from a conversation, for example with `base: D`";
                self.report(&at(field), Diagnostic::new(Code::NoEffect, message).remedy(remedy));
            }
            return;
        }
        if let Some((field, what, remedy)) = think.and_then(|think| think.mistake()) {
            let place = think.map(|think| [&at("think")[..], &steps![think.law(), field]].concat()).unwrap_or_default();
            let message = format!("`{field}` of the think time {what}");
            self.report(&place, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
        self.context(name, scenario, plan);
    }

    fn context(&mut self, name: &str, scenario: &Scenario, plan: &Plan) {
        let Some(resolved) = resolve(name, &plan.scenarios) else { return };
        let content = &resolved.content;
        let at = |field: &str| steps!["scenarios", name, field];
        let Some(limit) = content.talk.context_limit else {
            let on_axis = plan.sweeps.values().any(|sweep| !sweep.values("context_limit").is_empty());
            if is_other(&scenario.context_cut) && !on_axis {
                let message = format!("`context_cut` has no effect in scenario `{name}`: there is no `context_limit`");
                let remedy = "add the length of the model's context, like context_limit: 8192";
                self.report(&at("context_cut"), Diagnostic::new(Code::NoEffect, message).remedy(remedy));
            }
            return;
        };
        let needs = content.least_context();
        if scenario.context_limit.is_some() && needs > u64::from(limit) {
            let message = format!(
                "`context_limit: {limit}` is shorter than the first turn of scenario `{name}`: {needs} tokens, \
                 including the requested output"
            );
            let remedy = format!("write {needs} or more, or shorten prompt_tokens, output_tokens or system_tokens");
            self.report(&at("context_limit"), Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
    }

    /// Reports `sessions: open` in cells of a closed loop, which has no arrivals.
    pub(super) fn sessions_of_cells(&mut self, plan: &Plan, asked: &CheckedSweep) {
        if asked.sweep.extend.iter().any(|extend| extend.with.contains_key("qps")) {
            return;
        }
        let open = |value: &Scalar| *value == Scalar::Text(Sessions::Open.name().to_owned());
        let of_scenario = |value: &Scalar| {
            let resolved = resolve(&value.to_string(), &plan.scenarios);
            let content = resolved.map(|resolved| resolved.content);
            content
                .is_some_and(|content| content.reuse == Reuse::Conversation && content.talk.sessions == Sessions::Open)
        };
        // A `sessions` axis takes precedence over the scenarios.
        let found = match asked.grid.axes.field("sessions") {
            Some(_) => placed(asked, "sessions", open),
            None => placed(asked, "scenario", of_scenario),
        };
        for (field, value, place) in found {
            let Some(id) = asked.grid.axes.field(field) else { continue };
            let closed = asked.grid.axes.field("qps").map(|qps| (qps, Want::Absent));
            let wants: Vec<(usize, Want)> = [(id, Want::Is(value))].into_iter().chain(closed).collect();
            if !self.is_there(asked, &wants) {
                continue;
            }
            let whose = if field == "scenario" { format!(" of scenario `{value}`") } else { String::new() };
            let message = format!(
                "`sessions: open`{whose} has no effect in a closed loop: a slot begins its next conversation when \
                 the previous one ends"
            );
            let remedy = "add a rate with `qps` (and `batch_size` as a cap), or remove `sessions: open`";
            self.report(&place, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
    }
}

/// Whether a field differs from its default.
fn is_other<T: Default + PartialEq>(field: &Option<T>) -> bool {
    field.as_ref().is_some_and(|value| *value != T::default())
}

/// The values of an axis that satisfy `wanted`, each with its place.
pub(super) fn placed<'a>(
    asked: &'a CheckedSweep,
    field: &'static str,
    wanted: impl Fn(&Scalar) -> bool,
) -> Vec<(&'static str, &'a Scalar, Vec<Step>)> {
    let found = asked.grid.axes.fields(field).filter(|(_, one)| wanted(&one.value));
    let place = |axis: usize, one| {
        let written = &asked.sweep.matrix[asked.grid.axes.axes[axis].0];
        [&steps!["sweeps", asked.name][..], &asked.grid.axes.place(axis, one, written)].concat()
    };
    found.map(|(axis, one)| (field, &one.value, place(axis, one))).collect()
}
