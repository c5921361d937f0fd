//! Checks that depend on two axes at once, such as models and the engines on which they are measured, or
//! turns and scenarios without turns.

use indexmap::IndexMap;

use super::checker::{Checker, steps};
use super::condition::CheckedSweep;
use super::scenario::has_no_turns;
use super::talk::placed;
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::matrix::grid::Want;
use crate::plan::model::content::resolve;
use crate::plan::model::engine::Engine;
use crate::plan::model::plan::Plan;
use crate::plan::model::scalar::Scalar;
use crate::plan::model::talk::{ContextCut, History, Sessions};
use crate::plan::model::task::Misfit;
use crate::plan::text::tree::Step;
use crate::protocol::Api;
use crate::units::Nanos;

impl Checker<'_> {
    /// Checks pairs of values that occur together in cells of a sweep.
    pub(super) fn pairs(&mut self, plan: &Plan, asked: &CheckedSweep) {
        self.ids_of_models(plan, asked);
        for field in ["turns", "think", "history", "sessions", "context_limit", "context_cut"] {
            self.turns_of_cells(plan, asked, field);
        }
        self.sessions_of_cells(plan, asked);
        self.lengths_of_cells(plan, asked);
        self.lengths_asked_twice(asked);
        self.cold_cells(plan, asked);
        self.extra_of_cells(plan, asked);
        self.tasks_of_cells(plan, asked);
        self.parameters_of_cells(plan, asked);
        for (index, cell) in asked.sweep.add.iter().enumerate() {
            if let (Some(model), Some(endpoint)) = (cell.get("model"), cell.get("endpoint")) {
                self.model_on(plan, &model.to_string(), &endpoint.to_string());
            }
            if let (Some(scenario), Some(endpoint)) = (cell.get("scenario"), cell.get("endpoint")) {
                self.extra_on(plan, &scenario.to_string(), &endpoint.to_string());
                if let Some(server) = plan.endpoints.get(&endpoint.to_string())
                    && let Some(misfit) = misfit(plan, scenario, server.api)
                {
                    let at = steps!["sweeps", asked.name, "add", index, "scenario"];
                    self.other_task(&at, (scenario, endpoint), server.api, misfit);
                }
            }
        }
    }

    /// Checks the additional fields of each scenario for each endpoint to which it is sent.
    fn extra_of_cells(&mut self, plan: &Plan, asked: &CheckedSweep) {
        if plan.scenarios.values().all(|scenario| scenario.extra.is_empty()) {
            return;
        }
        for scenario in asked.grid.axes.values("scenario") {
            for endpoint in asked.grid.axes.values("endpoint") {
                if self.meet(asked, ("scenario", scenario), ("endpoint", endpoint)) {
                    self.extra_on(plan, &scenario.to_string(), &endpoint.to_string());
                }
            }
        }
    }

    /// Reports scenarios that are sent to endpoints whose protocol does not support them.
    fn tasks_of_cells(&mut self, plan: &Plan, asked: &CheckedSweep) {
        for endpoint in asked.grid.axes.values("endpoint") {
            let Some(server) = plan.endpoints.get(&endpoint.to_string()) else { continue };
            for (_, scenario, place) in placed(asked, "scenario", |_| true) {
                if let Some(misfit) = misfit(plan, scenario, server.api)
                    && self.meet(asked, ("scenario", scenario), ("endpoint", endpoint))
                {
                    self.other_task(&place, (scenario, endpoint), server.api, misfit);
                }
            }
        }
    }

    /// Reports values on axes of parameters that the API of an endpoint does not have.
    fn parameters_of_cells(&mut self, plan: &Plan, asked: &CheckedSweep) {
        for endpoint in asked.grid.axes.values("endpoint") {
            let Some(server) = plan.endpoints.get(&endpoint.to_string()) else { continue };
            for &field in server.api.protocol().lacks() {
                for (_, value, place) in placed(asked, field, is_sent) {
                    if self.meet(asked, (field, value), ("endpoint", endpoint)) {
                        let api = server.api.name();
                        let message = format!(
                            "`{field}: {value}` cannot be sent to endpoint `{endpoint}`: `api: {api}` has no such \
                             parameter"
                        );
                        let remedy = "remove the value, or use an endpoint with another API";
                        self.report(&place, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
                    }
                }
            }
        }
    }

    fn other_task(&mut self, at: &[Step], (scenario, endpoint): (&Scalar, &Scalar), api: Api, misfit: Misfit) {
        let Misfit { what, remedy } = misfit;
        let message = format!("scenario `{scenario}` {what}, but endpoint `{endpoint}` has `api: {}`", api.name());
        self.report(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
    }

    /// Checks that each model has an id for each engine on which it is measured.
    fn ids_of_models(&mut self, plan: &Plan, asked: &CheckedSweep) {
        let mut by_engine: IndexMap<Engine, Vec<&Scalar>> = IndexMap::new();
        for endpoint in asked.grid.axes.values("endpoint") {
            if let Some(server) = plan.endpoints.get(&endpoint.to_string()) {
                by_engine.entry(server.engine).or_default().push(endpoint);
            }
        }
        for model in asked.grid.axes.values("model") {
            let Some(found) = plan.models.get(&model.to_string()) else { continue };
            for (engine, endpoints) in &by_engine {
                if found.id.for_engine(*engine).is_some() {
                    continue;
                }
                if let Some(endpoint) = endpoints.iter().find(|on| self.meet(asked, ("endpoint", on), ("model", model)))
                {
                    self.model_on(plan, &model.to_string(), &endpoint.to_string());
                }
            }
        }
    }

    /// Reports turns and other fields of conversations in cells without conversations.
    fn turns_of_cells(&mut self, plan: &Plan, asked: &CheckedSweep, field: &'static str) {
        let without: Vec<&Scalar> = asked
            .grid
            .axes
            .values("scenario")
            .filter(|scenario| has_no_turns(&scenario.to_string(), &plan.scenarios))
            .collect();
        for (_, value, place) in placed(asked, field, |value| !is_none(field, value)) {
            let meets = |scenario: &&&Scalar| self.meet(asked, ("scenario", scenario), (field, value));
            let idle: Vec<String> = without.iter().filter(meets).map(ToString::to_string).collect();
            if !idle.is_empty() {
                let idle = suggest::choices(idle.iter().map(String::as_str)).replace(" or ", " and ");
                let what = if field == "turns" { "turns" } else { "it" };
                let message =
                    format!("`{field}: {value}` has no effect with scenario {idle}: only conversations have {what}");
                let remedy = format!(
                    "use `scenario: [D]` or a scenario based on D, or give the value a `when`: {{ value: {value}, \
                     when: {{ scenario: D }} }}"
                );
                self.report(&place, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
            }
        }
    }

    /// Whether there is a cell with both values.
    pub(super) fn meet(&mut self, asked: &CheckedSweep, one: (&str, &Scalar), other: (&str, &Scalar)) -> bool {
        let id = |name: &str| asked.grid.axes.field(name);
        let (Some(first), Some(second)) = (id(one.0), id(other.0)) else { return false };
        let wants = [(first, Want::Is(one.1)), (second, Want::Is(other.1))];
        self.is_there(asked, &wants)
    }
}

/// Returns why a scenario does not fit an API, with the remedy; `None` if it fits.
fn misfit(plan: &Plan, scenario: &Scalar, api: Api) -> Option<Misfit> {
    resolve(&scenario.to_string(), &plan.scenarios)?.misfit(api)
}

/// Whether requests carry a parameter with this value.
fn is_sent(value: &Scalar) -> bool {
    match value {
        Scalar::Bool(is_set) => *is_set,
        Scalar::Text(text) => text != "omit",
        _ => true,
    }
}

/// Whether a value of a conversation field has the same effect as the default.
fn is_none(field: &str, value: &Scalar) -> bool {
    match (field, value) {
        ("turns", Scalar::Number(turns)) => *turns <= 1u32.into(),
        ("think", Scalar::Text(time)) => time.parse() == Ok(Nanos::ZERO),
        ("history", Scalar::Text(name)) => name == History::default().name(),
        ("sessions", Scalar::Text(name)) => name == Sessions::default().name(),
        ("context_cut", Scalar::Text(name)) => name == ContextCut::default().name(),
        _ => false,
    }
}
