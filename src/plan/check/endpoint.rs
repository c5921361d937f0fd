//! Checks of endpoints and models: every endpoint must have a server, no secret may be exposed, and a model
//! must have an id wherever it is used.

use super::checker::{Checker, is_negative, is_not_positive, out_of_range, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::diagnostic::suggest;
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::engine::Engine;
use crate::plan::model::hardware::Hardware;
use crate::plan::model::http::{Http, HttpVersion};
use crate::plan::model::mock_figures::MockFigures;
use crate::plan::model::per_cell::PerCell;
use crate::plan::model::plan::Plan;
use crate::plan::model::price::Owned;
use crate::plan::model::retries::Retries;
use crate::plan::model::scalar::ModelId;
use crate::plan::model::under_test::{Model, ModelShape};
use crate::units::secrecy::carries_secret;
use crate::units::{Address, AddressError};

/// Headers that HTTP/2 does not allow (RFC 9113, section 8.2.2). Headers that sweepline sends itself are not
/// listed.
const OF_CONNECTIONS: [&str; 4] = ["keep-alive", "proxy-connection", "te", "upgrade"];

impl Checker<'_> {
    /// Checks every endpoint.
    pub(super) fn endpoints(&mut self, plan: &Plan) {
        for (name, endpoint) in &plan.endpoints {
            self.server(name, endpoint);
            if let Some(url) = &endpoint.url {
                self.url(name, url);
            }
            if let Some(secret) = &endpoint.api_key {
                self.secret(&steps!["endpoints", name.as_str(), "api_key", "secret"], secret);
            }
            self.headers(&steps!["endpoints", name.as_str(), "headers"], &endpoint.headers, &[endpoint]);
            self.access(name, endpoint);
            self.ready(name, endpoint);
            self.telemetry(name, endpoint);
            self.figures(name, endpoint);
            let runs = endpoint.retries.map(|retries| retries.runs).filter(|runs| *runs > Retries::MOST);
            let wanted = format!("0 to {}", Retries::MOST);
            self.outside(&steps!["endpoints", name.as_str(), "retries"], "runs", &wanted, runs);
            self.http(name, endpoint);
            self.resources(name, endpoint);
            self.extra_of_endpoint(name, endpoint);
        }
    }

    fn server(&mut self, name: &str, endpoint: &Endpoint) {
        let at = steps!["endpoints", name];
        // An unknown key of the endpoint may have been meant as `url` or `engine: mock`.
        let damaged = self.tree.walk(&at).node.is_damaged();
        let is_served = endpoint.url.is_some() || endpoint.launch.is_some() || self.is_given(&at, "launch");
        if !is_served && endpoint.engine != Engine::Mock && !damaged {
            let message = format!("endpoint `{name}` has no server: neither `url`, `launch` nor `engine: mock`");
            let remedy = "add `url: http://HOST:PORT/v1`, or `engine: mock` for the embedded server";
            self.report_key(&at, Diagnostic::new(Code::NoServer, message).remedy(remedy));
        }
        if endpoint.mock.is_none() || damaged {
            return;
        }
        let mock = steps!["endpoints", name, "mock"];
        if endpoint.engine != Engine::Mock {
            let message =
                format!("`mock` describes the embedded server, but the engine is `{}`", endpoint.engine.name());
            let remedy = "write `engine: mock` and remove `url`, or remove `mock`";
            self.report_key(&mock, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        } else if endpoint.launch.is_some() {
            let message = "`mock` describes the embedded server, but `launch` starts another one";
            let remedy = "remove `launch` to start the embedded server, or remove `mock`";
            self.report_key(&mock, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        } else if endpoint.url.is_some() {
            let message =
                "`mock` describes the embedded server, but `url` is the address of a server that is already running";
            let remedy = "remove `url` to start the embedded server, or remove `mock`";
            self.report_key(&mock, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn http(&mut self, name: &str, endpoint: &Endpoint) {
        let Some(Http { version, streams }) = endpoint.http else { return };
        let of_connection = |header: &&String| OF_CONNECTIONS.iter().any(|own| own.eq_ignore_ascii_case(header));
        if let Some(header) = endpoint.headers.keys().find(of_connection).filter(|_| version == HttpVersion::Two) {
            let message = format!("`{header}` applies to a single HTTP/1.1 connection, so HTTP/2 cannot carry it");
            let at = steps!["endpoints", name, "headers", header.as_str()];
            self.report_key(
                &at,
                Diagnostic::new(Code::Contradiction, message).remedy("remove the header, or remove `http: 2`"),
            );
        }
        let Some(streams) = streams else { return };
        let at = steps!["endpoints", name, "http", "streams"];
        if version == HttpVersion::One {
            let message = "`streams` limits the requests on one HTTP/2 connection, but the version is 1.1";
            let remedy = "write `version: 2`, or remove `streams`";
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        } else if !(1..=Http::MOST_STREAMS).contains(&streams) {
            self.report(&at, out_of_range("streams", &format!("1 to {}", Http::MOST_STREAMS), streams));
        }
    }

    fn ready(&mut self, name: &str, endpoint: &Endpoint) {
        let Some(ready) = &endpoint.ready else { return };
        if endpoint.is_embedded() {
            let message =
                "`ready` describes how sweepline waits for a server, but sweepline starts the embedded server itself";
            let remedy = "remove `ready`, or name the server with `url`";
            self.report_key(
                &steps!["endpoints", name, "ready"],
                Diagnostic::new(Code::Contradiction, message).remedy(remedy),
            );
        }
        let Some(path) = ready.path.as_deref().filter(|path| !path.starts_with('/')) else { return };
        let at = steps!["endpoints", name, "ready", "path"];
        let message = format!("`{path}` is not a path on the server: it does not begin with /");
        // The text is a whole address, or a path without its leading slash.
        let tail = reqwest::Url::parse(path).map_or_else(|_| format!("/{path}"), |url| url.path().to_owned());
        self.report(&at, Diagnostic::new(Code::Url, message).remedy(format!("write `{tail}`")));
    }

    fn url(&mut self, name: &str, url: &str) {
        let at = steps!["endpoints", name, "url"];
        let address = match Address::parse(url) {
            Ok(address) => address,
            Err(AddressError { message, remedy }) => {
                return self.report(&at, Diagnostic::new(Code::Url, message).remedy(remedy));
            }
        };
        if carries_secret(address.url()) {
            let message = "the URL contains a password or key, which would end up in results and logs";
            let remedy = "remove the secret from the URL and write api_key: { secret: env:NAME }";
            return self.report(&at, Diagnostic::new(Code::Secret, message).remedy(remedy));
        }
        for call in ["/chat/completions", "/completions", "/messages"] {
            if let Some(base) = Address::of_call(address.url(), call) {
                let message = format!("`url` is the base address of the API; sweepline appends `{call}`");
                let remedy = format!("write {base}, and select the API with `api`");
                return self.report(&at, Diagnostic::new(Code::Url, message).remedy(remedy));
            }
        }
    }

    fn figures(&mut self, name: &str, endpoint: &Endpoint) {
        if let Some(hardware) = &endpoint.hardware {
            let at = steps!["endpoints", name, "hardware"];
            self.outside(&at, "gpus", "1 or more", hardware.gpus().filter(|gpus| *gpus == 0));
            self.outside(&at, "replicas", "1 or more", hardware.replicas.filter(|replicas| *replicas == 0));
            self.replicas(name, hardware);
            let price = hardware.price_per_hour.as_ref().and_then(PerCell::same);
            self.outside(&at, "price_per_hour", "0 or more", price.filter(is_negative));
            self.price(name, hardware);
        }
        if let Some(mock) = &endpoint.mock {
            self.mock_figures(name, mock);
        }
    }

    /// Reports replicas that cannot all have the same number of accelerators.
    fn replicas(&mut self, name: &str, hardware: &Hardware) {
        let replicas = hardware.replicas.filter(|replicas| *replicas > 0);
        let Some((replicas, gpus)) = replicas.zip(hardware.gpus()) else { return };
        if gpus % replicas > 0 {
            let message = format!("{gpus} accelerators cannot be divided among {replicas} equal replicas");
            let remedy = "let `gpus` be the accelerators of all replicas together";
            let at = steps!["endpoints", name, "hardware", "replicas"];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn price(&mut self, name: &str, hardware: &Hardware) {
        let at = steps!["endpoints", name, "hardware"];
        self.outside(&at, "watts", "a number above 0", hardware.watts().filter(is_not_positive));
        let Some(Owned { purchase_price, lifetime_years, energy_price_per_kwh }) = hardware.owned else { return };
        let owned = steps!["endpoints", name, "hardware", "owned"];
        self.outside(&owned, "purchase_price", "0 or more", Some(purchase_price).filter(is_negative));
        self.outside(&owned, "lifetime_years", "a number above 0", Some(lifetime_years).filter(is_not_positive));
        self.outside(&owned, "energy_price_per_kwh", "0 or more", energy_price_per_kwh.filter(is_negative));
        if energy_price_per_kwh.is_some() && hardware.watts.is_none() {
            let message = "`energy_price_per_kwh` is set, but the power of the endpoint (`watts`) is not";
            let remedy = "add `watts` to `hardware`: the power of the whole endpoint under load";
            let at = steps!["endpoints", name, "hardware", "owned", "energy_price_per_kwh"];
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if hardware.price_per_hour.is_some() {
            let message = "the endpoint has both a price per hour and a purchase price";
            let remedy = "keep `price_per_hour` for rented hardware, or `owned` for hardware that you own";
            self.report_key(&owned, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
    }

    fn mock_figures(&mut self, name: &str, mock: &MockFigures) {
        let at = steps!["endpoints", name, "mock"];
        self.outside(&at, "slots", "1 or more", (mock.slots == 0).then_some(0));
        self.outside(&at, "load", "0 or more", Some(mock.load).filter(is_negative));
        let block = mock.prefix_block.unwrap_or(MockFigures::PREFIX_BLOCK);
        match mock.prefix_cache {
            _ if block == 0 => self.outside(&at, "prefix_block", "1 or more", Some(0)),
            Some(tokens) if tokens < block => {
                self.outside(&at, "prefix_cache", &format!("{block} (one block) or more"), Some(tokens));
            }
            None if mock.prefix_block.is_some() => {
                let message = "`prefix_block` is the size of the prefix cache's blocks, but there is no `prefix_cache`";
                let remedy = "add `prefix_cache: 100000` (tokens), or remove `prefix_block`";
                let at = steps!["endpoints", name, "mock", "prefix_block"];
                self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
            _ => {}
        }
    }

    /// Checks every model on its own. Whether it has an id for every engine that is used is checked with the
    /// sweeps.
    pub(super) fn models(&mut self, plan: &Plan) {
        for (name, model) in &plan.models {
            let at = steps!["models", name.as_str()];
            self.outside(&at, "parameters", "a number above 0", model.parameters.filter(is_not_positive));
            self.model_shape(name, model);
            match &model.id {
                ModelId::Same(id) if id.is_empty() => {
                    let at = steps!["models", name.as_str(), "id"];
                    self.empty(
                        &at,
                        format!("model `{name}` has an empty id"),
                        "write the name that its server uses for the model",
                    );
                }
                ModelId::Same(_) => {}
                ModelId::ByEngine(ids) => ids.keys().for_each(|engine| self.id_engine(name, engine)),
            }
        }
    }

    fn model_shape(&mut self, name: &str, model: &Model) {
        let at = steps!["models", name, "active_parameters"];
        if let Some(active) = model.active_parameters.filter(|active| !active.is_positive()) {
            self.report(&at, out_of_range("active_parameters", "a number above 0", active));
        } else if model.active_parameters.zip(model.parameters).is_some_and(|(active, all)| active > all) {
            let message = "`active_parameters` is larger than `parameters`, but a token cannot use more weights than \
                           the model has";
            let remedy = "`parameters` counts all weights, and `active_parameters` only those that one token uses";
            self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        let Some(ModelShape { layers, kv_heads, head_dim, kv_precision: _ }) = &model.shape else { return };
        for (field, value) in [("layers", layers), ("kv_heads", kv_heads), ("head_dim", head_dim)] {
            self.outside(&steps!["models", name, "shape"], field, "1 or more", (*value == 0).then_some(value));
        }
    }

    fn id_engine(&mut self, model: &str, engine: &str) {
        let names = Engine::ALL.iter().map(|engine| engine.name()).chain(["default"]);
        if !names.clone().any(|name| name == engine) {
            let message = format!("the ids of model `{model}` are listed by engine, but `{engine}` is not an engine");
            let remedy = suggest::remedy(engine, names);
            let at = steps!["models", model, "id", engine];
            self.report_key(&at, Diagnostic::new(Code::UnknownKey, message).remedy(remedy));
        }
    }

    /// Reports a model that is measured on an endpoint but has no id for the endpoint's engine.
    pub(super) fn model_on(&mut self, plan: &Plan, model: &str, endpoint: &str) {
        let (Some(found), Some(server)) = (plan.models.get(model), plan.endpoints.get(endpoint)) else { return };
        if self.tree.walk(&steps!["endpoints", endpoint]).node.is_damaged() {
            return; // The engine itself may be invalid.
        }
        let engine = server.engine.name();
        let at = steps!["models", model, "id"];
        if found.id.for_engine(server.engine).is_none() && !self.is_given(&at, engine) && !self.is_given(&at, "default")
        {
            let message = format!("model `{model}` is measured on endpoint `{endpoint}` but has no id for `{engine}`");
            let remedy = format!("add `{engine}: ` and the model's name on that server, or a `default`");
            self.report_key(&at, Diagnostic::new(Code::NoModelId, message).remedy(remedy));
        }
    }
}
