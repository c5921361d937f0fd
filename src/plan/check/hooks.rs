//! Checks of the hooks of endpoints (requests, commands, and texts that use values of cells), and of the
//! state that servers must reset.

use super::checker::{Checker, steps};
use super::launch::{cell_names, given};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::dialect::Dialect;
use crate::plan::model::endpoint::Endpoint;
use crate::plan::model::engine::Engine;
use crate::plan::model::hooks::{Hook, HookPoint, Reset, method_and_path};
use crate::plan::model::plan::Plan;
use crate::plan::template::cell::is_args;
use crate::plan::text::tree::Step;
use crate::units::Nanos;
use crate::units::secrecy::{carries_secret, holds_key};

impl Checker<'_> {
    /// Checks the hooks of all endpoints and the state that their servers must reset.
    pub(super) fn hooks(&mut self, plan: &Plan) {
        let given = given(plan);
        for (name, endpoint) in &plan.endpoints {
            self.reset(name, endpoint);
            if endpoint.hooks.is_empty() {
                continue;
            }
            let hooks_at = steps!["endpoints", name.as_str(), "hooks"];
            if endpoint.launch.is_none() {
                self.reserved(&hooks_at);
            }
            let names = cell_names(&given, name, endpoint);
            for point in HookPoint::ALL {
                for (index, hook) in endpoint.hooks.at(point).iter().enumerate() {
                    let at = [&hooks_at[..], &steps![point.name(), index]].concat();
                    self.hook(&at, hook, point);
                    for (path, text) in hook.texts() {
                        let at = [&at[..], &path].concat();
                        if is_args(text) {
                            let message = "`server.args` stands for the flags that a server is launched with, but a \
                                           hook launches no server";
                            let remedy = "name the flag that the hook needs: \"{{ server.max_num_seqs }}\"";
                            self.report(&at, Diagnostic::new(Code::Template, message).remedy(remedy));
                        } else {
                            self.text_of_cell(&at, text, &names);
                        }
                    }
                }
            }
        }
    }

    fn hook(&mut self, at: &[Step], hook: &Hook, point: HookPoint) {
        let point = point.name();
        let given = |checker: &Self, key| checker.is_given(at, key);
        match (&hook.request, &hook.command) {
            (Some(_), Some(_)) => {
                let message = format!("this {point} hook has both a `request` and a `command`");
                let remedy = format!("write two hooks, like {point}: [{{ request: ... }}, {{ command: [...] }}]");
                self.report(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
            (None, None) if !given(self, "request") && !given(self, "command") => {
                let message = format!("this {point} hook does nothing: it has neither a `request` nor a `command`");
                let remedy = "add request: POST /reset_prefix_cache, or command: [./collect.sh]";
                self.report(at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
            }
            _ => {}
        }
        if let Some(request) = &hook.request {
            self.request(&[at, &steps!["request"]].concat(), request);
        }
        if let Some(command) = &hook.command {
            let command_at = [at, &steps!["command"]].concat();
            if command.first().is_none_or(|program| program.trim().is_empty()) {
                let message = format!("this {point} hook has no program: `command` is empty");
                self.empty(
                    &command_at,
                    message,
                    "write the program and its arguments, like command: [./collect.sh, \"{{ model.id }}\"]",
                );
            }
            for (index, _) in command.iter().enumerate().filter(|(_, text)| holds_key(text)) {
                let at = [&command_at[..], &steps![index]].concat();
                let message =
                    format!("argument {index} of the command looks like a secret and would end up in results");
                let remedy = "let the program read the secret from an environment variable, which it inherits";
                self.report(&at, Diagnostic::new(Code::Secret, message).remedy(remedy));
            }
        }
        self.outside(at, "within", "above 0s", hook.within.filter(|within| *within == Nanos::ZERO));
    }

    fn request(&mut self, at: &[Step], request: &str) {
        let Some((_, path)) = method_and_path(request) else {
            let message = format!(
                "`{request}` is not a request: expected a method and an absolute path, like `POST /reset_prefix_cache`"
            );
            self.report(at, Diagnostic::new(Code::WrongValue, message).remedy(remedy_of_request(request)));
            return;
        };
        let address = reqwest::Url::parse(&format!("http://server{path}"));
        if address.is_ok_and(|address| carries_secret(&address)) {
            let message = "the path contains what looks like a secret and would end up in results";
            let remedy = "send the secret as a header of the endpoint, like headers: { X-Key: { secret: env:NAME } }";
            self.report(at, Diagnostic::new(Code::Secret, message).remedy(remedy));
        }
    }

    /// Reports a `reset` that is not possible: no request for it is known, or the plan does not launch the
    /// server.
    fn reset(&mut self, name: &str, endpoint: &Endpoint) {
        let at = steps!["endpoints", name, "reset"];
        match endpoint.reset {
            Some(Reset::PrefixCache) if Dialect::of(endpoint.engine).reset.is_none() => {
                let engine = endpoint.engine.name();
                let knows = Engine::ALL.into_iter().filter(|engine| Dialect::of(*engine).reset.is_some());
                let knows: Vec<&str> = knows.map(Engine::name).collect();
                let message = format!(
                    "`reset: prefix_cache` needs a request that empties the cache, but no such request is known for \
                     `{engine}` \
                     (only for {})",
                    knows.join(", ")
                );
                let remedy = "write your own hook, like hooks: { before_run: { request: POST /PATH } }; or launch the \
                              server and write `reset: restart`";
                self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
            Some(Reset::Restart)
                if endpoint.launch.is_none() && !self.is_given(&steps!["endpoints", name], "launch") =>
            {
                let message = format!("`reset: restart` restarts the server, but endpoint `{name}` has no `launch`");
                let remedy = "add launch: { command: [...], port: auto }, or write `reset: prefix_cache` if the engine \
                              supports it";
                self.report(&at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
            _ => {}
        }
    }
}

/// The remedy for a text that is not a valid request.
fn remedy_of_request(request: &str) -> String {
    let path_of = |text: &str| match reqwest::Url::parse(text) {
        Ok(url) if url.has_host() => {
            let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
            format!("{}{query}", url.path())
        }
        _ => format!("/{}", text.trim_start_matches('/')),
    };
    let mut words = request.split_whitespace();
    match (words.next(), words.next()) {
        (Some(path), None) => format!("write the method before the path: POST {}", path_of(path)),
        (Some(method), Some(path)) => format!("write {} {}", method.to_ascii_uppercase(), path_of(path)),
        (None, _) => "write request: POST /reset_prefix_cache".to_owned(),
    }
}
