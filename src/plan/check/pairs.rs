//! What depends on two axes at once: models and the engines they are measured on, turns and scenarios without them.

use indexmap::IndexMap;

use super::condition::Asked;
use super::scenario::has_no_turns;
use super::{Checker, steps};
use crate::plan::error::{Code, Diagnostic};
use crate::plan::matrix::Want;
use crate::plan::model::{Engine, Plan, Scalar};
use crate::plan::suggest;

impl Checker<'_> {
    /// Checks pairs of values that some cell of a sweep has.
    pub(super) fn pairs(&mut self, plan: &Plan, asked: &Asked) {
        self.ids_of_models(plan, asked);
        self.turns_of_cells(plan, asked);
        self.extra_of_cells(plan, asked);
        for cell in &asked.sweep.add {
            if let (Some(model), Some(endpoint)) = (cell.get("model"), cell.get("endpoint")) {
                self.model_on(plan, &model.to_string(), &endpoint.to_string());
            }
            if let (Some(scenario), Some(endpoint)) = (cell.get("scenario"), cell.get("endpoint")) {
                self.extra_on(plan, &scenario.to_string(), &endpoint.to_string());
            }
        }
    }

    /// The further fields of each scenario on each endpoint that it is sent to.
    fn extra_of_cells(&mut self, plan: &Plan, asked: &Asked) {
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

    /// Each model on each engine that it is measured on.
    fn ids_of_models(&mut self, plan: &Plan, asked: &Asked) {
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

    /// Turns where there is no conversation.
    fn turns_of_cells(&mut self, plan: &Plan, asked: &Asked) {
        let Some(turns) = asked.grid.axes.field("turns") else { return };
        let without: Vec<&Scalar> = asked
            .grid
            .axes
            .values("scenario")
            .filter(|scenario| has_no_turns(&scenario.to_string(), &plan.scenarios))
            .collect();
        let axis = asked.grid.axes.given_by[turns];
        let (key, points) = &asked.grid.axes.axes[axis];
        for field in points.iter().flat_map(|point| &point.fields).filter(|field| field.name == turns) {
            let value = &field.value;
            if matches!(value, Scalar::Number(turns) if *turns <= 1u32.into()) {
                continue;
            }
            let meets = |scenario: &&&Scalar| self.meet(asked, ("scenario", scenario), ("turns", value));
            let idle: Vec<String> = without.iter().filter(meets).map(ToString::to_string).collect();
            if !idle.is_empty() {
                let idle = suggest::choices(idle.iter().map(String::as_str)).replace(" or ", " and ");
                let message =
                    format!("`turns: {value}` does nothing with scenario {idle}: only conversations have turns");
                let remedy =
                    "use scenario: [D] or one based on it, or give it a `when`: { value: 3, when: { scenario: D } }";
                let place = asked.grid.axes.place(axis, field, &asked.sweep.matrix[*key]);
                let at = [&steps!["sweeps", asked.name][..], &place].concat();
                self.report(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
            }
        }
    }

    /// Whether some cell has both values.
    fn meet(&mut self, asked: &Asked, one: (&str, &Scalar), other: (&str, &Scalar)) -> bool {
        let id = |name: &str| asked.grid.axes.field(name);
        let (Some(first), Some(second)) = (id(one.0), id(other.0)) else { return false };
        let wants = [(first, Want::Is(one.1)), (second, Want::Is(other.1))];
        self.is_there(asked, &wants)
    }
}
