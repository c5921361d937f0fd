//! Checks of launched servers: addresses, ports, cell values in texts, and flags that axes set.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::axis::server_flag;
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::launch::{Launch, Port};
use crate::plan::model::phases::PhasesPatch;
use crate::plan::model::plan::Plan;
use crate::plan::model::scalar::{Fact, Scalar};
use crate::plan::model::sweep::Sweep;
use crate::plan::model::table::Table;
use crate::plan::model::text_or_secret::TextOrSecret;
use crate::plan::template::cell::{CellNames, CellValue, asked, is_args};
use crate::plan::template::eval::NAMES_OF_CELLS;
use crate::plan::text::tree::Step;
use crate::units::secrecy::{holds_key, is_secret_name};

/// The key in an endpoint's `server` table whose entries are flags of the server.
const FLAGS: &str = "flags";

impl Checker<'_> {
    /// Checks how the servers of all endpoints are launched.
    pub(super) fn launches(&mut self, plan: &Plan) {
        let given = given(plan);
        for (name, endpoint) in &plan.endpoints {
            let names = cell_names(&given, name, endpoint);
            self.texts_of_cells(name, endpoint, &names);
            let Some(launch) = &endpoint.launch else { continue };
            let at = steps!["endpoints", name.as_str(), "launch"];
            self.reserved(&at);
            if launch.command.first().is_none_or(|program| program.trim().is_empty()) {
                let message = format!("endpoint `{name}` has no program to launch: `command` is empty");
                let remedy = "write the program and its arguments, like command: [vllm, serve, \"{{ model.id }}\"]";
                self.empty(&[&at[..], &steps!["command"]].concat(), message, remedy);
            }
            self.address(&at, endpoint, launch);
            self.variables(&at, launch);
        }
        self.shared_ports(plan);
        for (name, sweep) in &plan.sweeps {
            self.flags(plan, name, sweep);
        }
    }

    /// Reports variables of the plan that have the same name as a value that cells provide.
    pub(super) fn reserved(&mut self, used: &[Step]) {
        let taken: Vec<&str> = self.declared("vars").into_iter().filter(|name| NAMES_OF_CELLS.contains(name)).collect();
        for name in taken {
            let message = format!(
                "the variable name `{name}` is reserved: in `launch` and `hooks`, it stands for a value of the cell"
            );
            let mut diagnostic = Diagnostic::new(Code::Contradiction, message).remedy("rename the variable");
            diagnostic.related.extend(self.key_of(used, "used here"));
            self.report_key(&steps!["vars", name], diagnostic);
        }
    }

    /// Reports references in texts to values that no cell has.
    fn texts_of_cells(&mut self, name: &str, endpoint: &Endpoint, names: &CellNames) {
        let endpoint_at = steps!["endpoints", name];
        let at = |field: &str, path: &[Step]| [&endpoint_at[..], &[Step::from(field)], path].concat();
        for (path, text) in endpoint.launch.iter().flat_map(Launch::texts) {
            let is_element = path.iter().any(|step| *step == Step::from("command"));
            if !(is_element && is_args(text)) {
                self.text_of_cell(&at("launch", &path), text, names);
            }
        }
        for (fact, value) in &endpoint.server {
            let entries: Vec<(Vec<Step>, &Scalar)> = match value {
                Fact::One(value) => vec![(vec![Step::from(fact.as_str())], value)],
                Fact::Many(table) => {
                    let path = |key: &String| vec![Step::from(fact.as_str()), Step::from(key.as_str())];
                    table.iter().map(|(key, value)| (path(key), value)).collect()
                }
            };
            for (path, value) in entries {
                if let Scalar::Text(text) = value {
                    self.text_of_cell(&at("server", &path), text, names);
                }
            }
        }
        for (field, text) in endpoint.hardware.iter().flat_map(|hardware| hardware.expressions()) {
            self.text_of_cell(&at("hardware", &steps![field]), text, names);
        }
    }

    pub(super) fn text_of_cell(&mut self, at: &[Step], text: &str, names: &CellNames) {
        let wrong = match asked(text) {
            Ok(asked) => asked.iter().find_map(|asked| names.has(&asked.name).err()),
            Err(mistake) => Some(mistake),
        };
        if let Some(mistake) = wrong {
            self.report(at, Diagnostic::new(Code::Template, mistake.message).remedy(mistake.remedy));
        }
    }

    /// Reports a missing address of a launched server, and settings of `url`, `port` and `command` that
    /// contradict each other.
    fn address(&mut self, at: &[Step], endpoint: &Endpoint, launch: &Launch) {
        let port_at = [at, &steps!["port"]].concat();
        let url = endpoint.url.as_deref().and_then(|url| reqwest::Url::parse(url).ok());
        let of_url = url.as_ref().and_then(reqwest::Url::port);
        let says_port = || {
            launch
                .texts()
                .iter()
                .any(|(_, text)| asked(text).is_ok_and(|asked| asked.iter().any(|asked| asked.name == "port")))
        };
        match (launch.port, of_url) {
            (Some(Port::Auto), Some(port)) => {
                let message = format!("`url` has port {port}, but `port: auto` chooses another one");
                let remedy = "remove the port from `url`, or write that port instead of `auto`";
                self.report(&port_at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
            (Some(Port::Fixed(port)), Some(of_url)) if port != of_url => {
                let message = format!("the server is launched on port {port}, but `url` has port {of_url}");
                self.report(
                    &port_at,
                    Diagnostic::new(Code::Contradiction, message).remedy("write the same port in `port` and `url`"),
                );
            }
            (Some(Port::Auto), None) if !says_port() => {
                let message = "`port: auto` chooses a port, but `launch` does not pass it to the server";
                let remedy = "add the port to the command: --port, \"{{ port }}\"";
                self.report(&port_at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
            }
            (None, _) if endpoint.url.is_none() => {
                let message = "the launched server has neither a `url` nor a `port`";
                let remedy =
                    "add `port: auto`, and \"{{ port }}\" to the command; or add url: http://127.0.0.1:8000/v1";
                self.report_key(at, Diagnostic::new(Code::NoServer, message).remedy(remedy));
            }
            _ => {}
        }
    }

    /// Reports environment variables that cannot be passed to a program, and secrets in plain text.
    fn variables(&mut self, at: &[Step], launch: &Launch) {
        for (field, table) in [("env", &launch.env), ("host_env", &launch.host_env)] {
            for (name, value) in table {
                let at = [at, &steps![field, name.as_str()]].concat();
                if name.is_empty() || name.contains(['=', '\0']) {
                    let message = format!("`{name}` cannot be the name of an environment variable");
                    self.report_key(
                        &at,
                        Diagnostic::new(Code::WrongValue, message).remedy("write a name like HF_HOME"),
                    );
                }
                match value {
                    TextOrSecret::Secret(secret) => {
                        self.lasting_secret(&[&at[..], &steps!["secret"]].concat(), secret);
                    }
                    TextOrSecret::Text(text) if is_secret_name(name) || holds_key(text) => {
                        let message = format!("the value of `{name}` looks like a secret and would end up in results");
                        let remedy = format!("write {name}: {{ secret: env:{name} }}");
                        self.report(&at, Diagnostic::new(Code::Secret, message).remedy(remedy));
                    }
                    TextOrSecret::Text(_) => {}
                }
                if field == "host_env" && launch.env.contains_key(name) {
                    let message = format!("`{name}` is in both `env` and `host_env`");
                    let remedy = "keep the variable in `env` if it affects the speed of the server, otherwise in \
                                  `host_env`";
                    self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
                }
            }
        }
        let stop = launch.stop.as_ref().and_then(|stop| stop.command.as_deref()).unwrap_or_default();
        let commands = [(&launch.command[..], &steps!["command"][..]), (stop, &steps!["stop", "command"])];
        for (command, path) in commands {
            for (index, _) in command.iter().enumerate().filter(|(_, text)| holds_key(text)) {
                let at = [at, path, &steps![index]].concat();
                let message =
                    format!("argument {index} of the command looks like a secret and would end up in results");
                let remedy = "pass the secret in the server's environment, like env: { API_KEY: { secret: \
                              env:API_KEY } }";
                self.report(&at, Diagnostic::new(Code::Secret, message).remedy(remedy));
            }
        }
    }

    /// Reports two endpoints that launch on one port and may run at the same time, and endpoints whose `url`
    /// is the address of a server that the plan launches for another endpoint.
    fn shared_ports(&mut self, plan: &Plan) {
        let mut first: BTreeMap<u16, (&str, Option<&str>)> = BTreeMap::new();
        for (name, endpoint) in &plan.endpoints {
            let Some(port) = endpoint.launch_port().filter(|_| endpoint.launch.is_some()) else { continue };
            let resource = endpoint.resource.as_deref();
            match first.get(&port) {
                Some((other, of_other)) if *of_other != resource => {
                    let message = format!(
                        "endpoints `{other}` and `{name}` both launch on port {port} and may run at the same time, \
                         because their resources differ"
                    );
                    let remedy = "give each endpoint its own port or `port: auto`, or give both endpoints the same \
                                  `resource`";
                    let mut diagnostic = Diagnostic::new(Code::Contradiction, message).remedy(remedy);
                    diagnostic.related.extend(self.key_of(&steps!["endpoints", *other, "launch"], "launched here"));
                    self.report_key(&steps!["endpoints", name.as_str(), "launch"], diagnostic);
                }
                Some(_) => {}
                None => drop(first.insert(port, (name, resource))),
            }
        }
        for (name, endpoint) in plan.endpoints.iter().filter(|(_, endpoint)| endpoint.launch.is_none()) {
            let url = endpoint.url.as_deref().and_then(|url| reqwest::Url::parse(url).ok());
            let here =
                url.filter(|url| matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]" | "0.0.0.0")));
            let port = here.and_then(|url| url.port_or_known_default());
            let Some((launched, _)) = port.and_then(|port| first.get(&port)) else { continue };
            let message = format!(
                "`{name}` uses the address of the server that the plan launches for `{launched}`, so it would measure \
                 whichever server runs there"
            );
            let remedy = format!(
                "remove `{name}`; to vary the settings of one server, use a `server` axis of \
                                  `{launched}`"
            );
            let mut diagnostic = Diagnostic::new(Code::Contradiction, message).remedy(remedy);
            diagnostic.related.extend(self.key_of(&steps!["endpoints", *launched, "launch"], "launched here"));
            self.report(&steps!["endpoints", name.as_str(), "url"], diagnostic);
        }
    }

    /// Reports axes that set flags of a server although no server is started with these flags.
    fn flags(&mut self, plan: &Plan, sweep_name: &str, sweep: &Sweep) {
        let flags: Vec<&str> = sweep.fields().into_iter().filter(|field| server_flag(field).is_some()).collect();
        if flags.is_empty() {
            return;
        }
        let named: Vec<String> = sweep.values("endpoint").iter().map(ToString::to_string).collect();
        let is_meant = |name: &str| named.is_empty() || named.iter().any(|named| named == name);
        let meant: Vec<(&String, &Endpoint)> = plan.endpoints.iter().filter(|(name, _)| is_meant(name)).collect();
        let launched: Vec<(&String, &Launch)> =
            meant.iter().filter_map(|(name, endpoint)| Some((*name, endpoint.launch.as_ref()?))).collect();
        for axis in flags {
            for (_, place) in sweep.written(axis).into_iter().filter(|(value, _)| holds_key(&value.to_string())) {
                let at = [&steps!["sweeps", sweep_name][..], &place].concat();
                let message = format!("a value of `{axis}` looks like a secret and would end up in results");
                let remedy = "pass the secret in the server's environment, like launch: { env: { API_KEY: { \
                              secret: env:API_KEY } } }";
                self.report(&at, Diagnostic::new(Code::Secret, message).remedy(remedy));
            }
            let at = self.place_of_flag(sweep_name, sweep, axis);
            let Some(flag) = server_flag(axis) else { continue };
            if launched.is_empty() {
                if meant.iter().any(|(name, _)| self.is_given(&steps!["endpoints", name.as_str()], "launch")) {
                    continue;
                }
                let names: Vec<String> = meant.iter().map(|(name, _)| format!("`{name}`")).collect();
                let have = if names.len() == 1 { "has" } else { "have" };
                let message = format!(
                    "`{axis}` sets a flag of the server, but no server is started with it: {} {have} no `launch`",
                    names.join(" and ")
                );
                let remedy = "add launch: { command: [...], port: auto } to the endpoint, \
                              with \"{{ server.args }}\" in its command";
                self.report_key(&at, Diagnostic::new(Code::AxisNotPossible, message).remedy(remedy));
                continue;
            }
            for (name, launch) in &launched {
                if !uses(launch, flag) {
                    let message = format!(
                        "the command of endpoint `{name}` does not use `{axis}`: every value would start the same \
                         server"
                    );
                    let remedy =
                        format!("add \"{{{{ server.args }}}}\" to its command, or \"{{{{ {axis} }}}}\" after its flag");
                    self.report_key(&at, Diagnostic::new(Code::NoEffect, message).remedy(remedy));
                }
            }
        }
    }

    /// Reports fields that a sweep with `measure: start` cannot have.
    pub(super) fn measures_start(&mut self, plan: &Plan, name: &str, sweep: &Sweep) {
        let fields = sweep.fields();
        let fits = |field: &str| matches!(field, "endpoint" | "model" | "scenario") || server_flag(field).is_some();
        for field in fields.into_iter().filter(|field| !fits(field)) {
            let message = format!("`{field}` determines what is sent, but a sweep with `measure: start` sends no load");
            let remedy = "remove the axis, or measure it in a separate sweep";
            let at = self.place_of_flag(name, sweep, field);
            self.report_key(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        for field in ["arrivals", "phases", "stream", "connections"] {
            // A frozen plan always contains `phases: {}`, which is not an error.
            let is_empty = field == "phases" && sweep.phases == PhasesPatch::default();
            if !is_empty && self.is_given(&steps!["sweeps", name], field) {
                let message = format!("`{field}` applies to a load, but a sweep with `measure: start` has no load");
                let at = steps!["sweeps", name, field];
                self.report_key(&at, Diagnostic::new(Code::NoEffect, message).remedy("remove it"));
            }
        }
        let named: Vec<String> = sweep.values("endpoint").iter().map(ToString::to_string).collect();
        for name_of in named {
            let is_launched = plan.endpoints.get(&name_of).is_none_or(|endpoint| endpoint.launch.is_some());
            if !is_launched && !self.is_given(&steps!["endpoints", name_of.as_str()], "launch") {
                let message = format!("`measure: start` starts servers, but endpoint `{name_of}` has no `launch`");
                let remedy = "add launch: { command: [...], port: auto } to the endpoint, or remove the endpoint from \
                              the matrix";
                let at = steps!["sweeps", name, "measure"];
                self.report(&at, Diagnostic::new(Code::AxisNotPossible, message).remedy(remedy));
            }
        }
    }

    fn place_of_flag(&self, name: &str, sweep: &Sweep, axis: &str) -> Vec<Step> {
        let (_, place) = sweep.written(axis).into_iter().next().unwrap_or_else(|| (Scalar::Bool(true), Vec::new()));
        let matrix = steps!["sweeps", name, "matrix", axis];
        if self.tree.walk(&matrix).depth == matrix.len() {
            return matrix.to_vec();
        }
        [&steps!["sweeps", name][..], &place].concat()
    }
}

/// Whether a launch passes a flag to the server.
fn uses(launch: &Launch, flag: &str) -> bool {
    let whole = format!("server.{flag}");
    launch
        .texts()
        .iter()
        .any(|(_, text)| is_args(text) || asked(text).is_ok_and(|asked| asked.iter().any(|asked| asked.name == whole)))
}

/// The endpoints of a sweep, and the flags that it passes to their servers.
pub(super) struct Given<'p> {
    /// The endpoints that the sweep names; empty means all.
    endpoints: HashSet<String>,
    /// The server flags that its axes or cells set.
    flags: Vec<&'p str>,
}

/// Collects the endpoints and server flags of each sweep. This is done once for all endpoints, because a
/// single sweep may contain all the values that the plan is allowed to have.
pub(super) fn given(plan: &Plan) -> Vec<Given<'_>> {
    let of = |sweep: &'_ Sweep| sweep.values("endpoint").iter().map(ToString::to_string).collect();
    let flags = |sweep| Sweep::fields(sweep).into_iter().filter_map(server_flag).collect();
    plan.sweeps.values().map(|sweep| Given { endpoints: of(sweep), flags: flags(sweep) }).collect()
}

/// Every name for which some cell on an endpoint provides a value.
pub(super) fn cell_names(given: &[Given<'_>], name: &str, endpoint: &Endpoint) -> CellNames {
    let text = |text: &str| CellValue::Text(text.to_owned());
    let all = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), text(""))).collect();
    let is_on = |sweep: &&Given<'_>| sweep.endpoints.is_empty() || sweep.endpoints.contains(name);
    let of_sweeps = given.iter().filter(is_on).flat_map(|sweep| &sweep.flags);
    let mut flags: BTreeSet<String> = of_sweeps.map(|flag| (*flag).to_owned()).collect();
    let declared: Option<&Table<Scalar>> = match endpoint.server.get(FLAGS) {
        Some(Fact::Many(table)) => Some(table),
        _ => None,
    };
    flags.extend(declared.into_iter().flat_map(Table::keys).cloned());
    let facts = endpoint.server.iter().filter(|(_, fact)| matches!(fact, Fact::One(_))).map(|(name, _)| name.as_str());
    CellNames {
        model: all(&["id", "name"]),
        endpoint: all(&["engine", "name"]),
        flags: flags.into_iter().map(|flag| (flag, text(""))).collect(),
        facts: all(&facts.collect::<Vec<_>>()),
        port: None,
    }
}
