//! Checks of the additional fields in a request's body: they must not be fields that sweepline sends itself,
//! their values must have the right type, and the engine must accept them. Servers ignore unknown fields, so
//! a typo would go unnoticed, and the runs would not measure what was intended.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::engine::Engine;
use crate::plan::model::extra::json::Json;
use crate::plan::model::extra::{dialect, of_engine};
use crate::plan::model::plan::Plan;
use crate::plan::model::scenario::Scenario;
use crate::plan::model::table::Table;
use crate::plan::text::tree::Step;
use crate::protocol::Api;
use crate::units::secrecy::{is_secret_name, looks_like_key};

impl Checker<'_> {
    /// Checks `extra` of an endpoint, which is sent unchanged.
    pub(super) fn extra_of_endpoint(&mut self, name: &str, endpoint: &Endpoint) {
        for (field, value) in &endpoint.extra {
            let at = steps!["endpoints", name, "extra", field.as_str()];
            self.field(&at, field, value);
            self.beside_prompt(&at, field, endpoint.api);
        }
    }

    /// Checks `stop` and `extra` of a scenario on their own. Whether an engine accepts the fields is checked
    /// with the sweeps that send them.
    pub(super) fn extra_of_scenario(&mut self, name: &str, scenario: &Scenario) {
        for (index, _) in scenario.stop.0.iter().enumerate().filter(|(_, text)| text.is_empty()) {
            let message = "an empty text in `stop` would end every response before it begins";
            self.empty(&steps!["scenarios", name, "stop", index], message, "remove it");
        }
        for (field, value) in &scenario.extra {
            let at = steps!["scenarios", name, "extra", field.as_str()];
            match (of_engine(field), value) {
                (None, _) => self.field(&at, field, value),
                (Some(engine), Json::Table(own)) => self.fields_of_engine(&at, engine, own),
                (Some(_), other) => {
                    let message =
                        format!("`{field}` must be a table with the fields for that engine, not {}", other.kind());
                    let remedy = format!("write {field}: {{ top_k: 20 }}, or remove the field");
                    self.report(&at, Diagnostic::new(Code::WrongType, message).remedy(remedy));
                }
            }
        }
    }

    fn fields_of_engine(&mut self, at: &[Step], engine: Engine, own: &Table<Json>) {
        for (field, value) in own {
            let at = [at, &steps![field.as_str()]].concat();
            self.field(&at, field, value);
            self.taken_by(&at, field, engine);
        }
    }

    /// Checks the additional fields of a scenario, and of the scenarios of its mix, for an endpoint to which
    /// it is sent.
    pub(super) fn extra_on(&mut self, plan: &Plan, scenario: &str, endpoint: &str) {
        let Some(server) = plan.endpoints.get(endpoint) else { return };
        if self.tree.walk(&steps!["endpoints", endpoint]).node.is_damaged() {
            return; // The engine itself may be invalid.
        }
        self.extra_sent_to(plan, scenario, server);
        for part in plan.scenarios.get(scenario).map_or(&[][..], |own| &own.mix) {
            self.extra_sent_to(plan, &part.scenario, server);
        }
    }

    /// Checks the additional fields of a scenario and of its bases for an endpoint.
    fn extra_sent_to(&mut self, plan: &Plan, scenario: &str, server: &Endpoint) {
        let mut at = scenario;
        // The loop ends even if bases form a cycle, because a cycle is no longer than the table.
        for _ in 0..=plan.scenarios.len() {
            let Some(own) = plan.scenarios.get(at) else { return };
            for (field, value) in &own.extra {
                let at = steps!["scenarios", at, "extra", field.as_str()];
                match (of_engine(field), value) {
                    (None, _) => {
                        self.beside_prompt(&at, field, server.api);
                        self.taken_by_server(&at, field, server);
                    }
                    (Some(engine), Json::Table(own)) if engine == server.engine => {
                        for field in own.keys() {
                            let at = [&at[..], &steps![field.as_str()]].concat();
                            self.beside_prompt(&at, field, server.api);
                            self.taken_by_api(&at, field, server.api);
                        }
                    }
                    (Some(_), _) => {}
                }
            }
            at = own.base.as_deref().unwrap_or_default();
        }
    }

    /// Reports a field that would appear twice in a body because sweepline already sends it.
    fn beside_prompt(&mut self, at: &[Step], field: &str, api: Api) {
        let is_stop = api.protocol().stop_field() == field;
        if !(is_stop || api.prompt_fields().contains(&field)) || dialect::refused(field).is_some() {
            return;
        }
        let message = format!("`{field}` cannot be an extra field of `api: {}`: sweepline sends it itself", api.name());
        let remedy = if is_stop {
            "write `stop` in the scenario, outside `extra`"
        } else {
            "describe prompts with the scenario's fields"
        };
        self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
    }

    /// Reports a field that a server is known not to accept. If the API determines the fields, the engine does
    /// not matter.
    fn taken_by_server(&mut self, at: &[Step], field: &str, server: &Endpoint) {
        match server.api.protocol().extra_fields() {
            Some(_) => self.taken_by_api(at, field, server.api),
            None => self.taken_by(at, field, server.engine),
        }
    }

    /// Reports a field that requests of an API cannot have.
    fn taken_by_api(&mut self, at: &[Step], field: &str, api: Api) {
        let Some(fields) = api.protocol().extra_fields() else { return };
        let is_sent = api.prompt_fields().contains(&field) || api.protocol().stop_field() == field;
        if fields.contains(&field) || is_sent || dialect::refused(field).is_some() {
            return;
        }
        let remedy = match suggest::nearest(field, fields.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "if the server accepts it nevertheless, write it under `extra` of the endpoint".to_owned(),
        };
        let message = format!("requests of `api: {}` have no field `{field}`", api.name());
        self.report_key(at, Diagnostic::new(Code::UnknownKey, message).remedy(remedy));
    }

    /// Reports a field that an engine is known not to accept.
    fn taken_by(&mut self, at: &[Step], field: &str, engine: Engine) {
        if dialect::is_field(engine, field) || dialect::refused(field).is_some() {
            return;
        }
        let name = engine.name();
        let elsewhere: Vec<&str> =
            Engine::ALL.iter().filter(|other| dialect::names(**other, field)).map(|other| other.name()).collect();
        let remedy = match suggest::nearest(field, dialect::fields_of(engine)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if !elsewhere.is_empty() => {
                let table = elsewhere[0];
                format!("this is a field of {}: write it as {table}: {{ {field}: … }}", suggest::choices(elsewhere))
            }
            None => "if the server accepts it nevertheless, write it under `extra` of the endpoint".to_owned(),
        };
        let message = format!("requests to `{name}` have no field `{field}`");
        self.report_key(at, Diagnostic::new(Code::UnknownKey, message).remedy(remedy));
    }

    /// Checks one field, independently of the engine.
    fn field(&mut self, at: &[Step], field: &str, value: &Json) {
        if let Some((why, remedy)) = dialect::refused(field) {
            let message = format!("`{field}` cannot be an extra field: {why}");
            return self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if holds_key(value) || (dialect::takes(field).is_none() && is_secret_name(field)) {
            let message = format!("the value of `{field}` looks like a secret and would end up in results");
            let remedy = "remove the field, and set the key in the endpoint with api_key: { secret: env:NAME }";
            return self.report(at, Diagnostic::new(Code::Secret, message).remedy(remedy));
        }
        let Some(takes) = dialect::takes(field).filter(|takes| !takes.takes(value)) else { return };
        let wanted = takes.wanted();
        let (code, shown) = match value {
            Json::Number(number) => (Code::OutOfRange, number.to_string()),
            other => (Code::WrongType, other.kind().to_owned()),
        };
        let message = format!("`{field}` must be {wanted}, not {shown}");
        self.report(at, Diagnostic::new(code, message).remedy(format!("write {wanted}, or remove the field")));
    }
}

/// Whether a value contains a text that looks like an API key of a well-known service.
fn holds_key(value: &Json) -> bool {
    match value {
        Json::Text(text) => text.split_whitespace().any(looks_like_key),
        Json::List(items) => items.iter().any(holds_key),
        Json::Table(table) => table.values().any(holds_key),
        Json::Bool(_) | Json::Number(_) => false,
    }
}
