//! Checks, before anything is sent or started, that this machine has what the runs of a sweep need: secrets,
//! certificates, programs and folders. Pipes are not read, because they can be read only once.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use indexmap::IndexMap;
use tokio::sync::watch;

use crate::expand::launch::concrete;
use crate::expand::{PlannedRun, RunSpec};
use crate::plan::{Endpoint, Launch, Plan, SecretRef, Step, TextOrSecret};
use crate::server::launch::find_program;

use super::hooks;
use super::live::route;
use super::perform::secrets_of;
use super::secrets::{ResolveError, Use, resolve_secret, resolve_until};

/// A port for expressions that need one before a port is chosen.
const ANY_PORT: u16 = 1;

/// Something that an endpoint's runs need and that this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unmet {
    /// The name of the endpoint.
    pub(crate) endpoint: String,
    /// The place in the plan that requires it.
    pub(crate) at: Vec<Step>,
    /// The problem and the remedy.
    pub(crate) reason: String,
}

/// Returns what the endpoints of `runs` need and this machine lacks, in the order of the plan's endpoints. `folder`
/// is the plan's folder. Commands that print tokens are not executed.
pub(crate) fn unmet<'r>(plan: &Plan, folder: &Path, runs: impl Iterator<Item = &'r PlannedRun>) -> Vec<Unmet> {
    unmet_until(plan, folder, runs, None)
}

/// Like [`unmet`], but also executes the commands that print tokens for servers to launch, until `stop` becomes true.
/// The tokens are kept for the sweep.
pub(super) fn unmet_until<'r>(
    plan: &Plan,
    folder: &Path,
    runs: impl Iterator<Item = &'r PlannedRun>,
    stop: Option<&watch::Receiver<bool>>,
) -> Vec<Unmet> {
    let mut of_endpoint: IndexMap<&str, Vec<&PlannedRun>> = IndexMap::new();
    for run in runs {
        of_endpoint.entry(run.spec.endpoint.name.as_str()).or_default().push(run);
    }
    of_endpoint.sort_by_cached_key(|name, _| plan.endpoints.get_index_of(*name));
    let mut unmet = Vec::new();
    for (name, runs) in of_endpoint {
        let mut needs = Needs { plan, name, endpoint: &plan.endpoints[name], folder, stop, unmet: Vec::new() };
        needs.access();
        needs.headers(&runs);
        needs.launch(&runs);
        needs.hooks(&runs);
        unmet.append(&mut needs.unmet);
    }
    unmet
}

/// The requirements of one endpoint.
struct Needs<'a> {
    plan: &'a Plan,
    name: &'a str,
    endpoint: &'a Endpoint,
    folder: &'a Path,
    /// Becomes true when the sweep is stopped; `None` if no command is executed.
    stop: Option<&'a watch::Receiver<bool>>,
    unmet: Vec<Unmet>,
}

impl Needs<'_> {
    /// Adds a problem with a field of the endpoint.
    fn add(&mut self, field: &[&str], reason: impl ToString) {
        let at = ["endpoints", self.name].iter().chain(field).map(|key| Step::from(*key)).collect();
        self.add_at(at, reason);
    }

    /// Adds a problem with a part of the plan. Runs with different settings may share a problem, which is
    /// reported once.
    fn add_at(&mut self, at: Vec<Step>, reason: impl ToString) {
        let found = Unmet { endpoint: self.name.to_owned(), at, reason: reason.to_string() };
        if !self.unmet.contains(&found) {
            self.unmet.push(found);
        }
    }

    /// Checks the key, the proxy and the certificates.
    fn access(&mut self) {
        if let Some(Err(error)) = self.endpoint.api_key.as_ref().map(|key| self.readable(Use::Key, key)) {
            self.add(&["api_key"], error);
        }
        let access = self.endpoint.access();
        if let Some(TextOrSecret::Secret(proxy)) = &access.proxy {
            // The proxy is needed to make the route, so the route is not checked without it.
            return match self.readable(Use::Proxy, proxy) {
                Ok(()) => {}
                Err(error) => self.add(&["proxy"], error),
            };
        }
        let url = match self.endpoint.launch {
            Some(_) => self.endpoint.launched_url(self.endpoint.launch_port().unwrap_or(ANY_PORT)),
            None => self.endpoint.url.clone(),
        };
        match url.map(|url| route(&url, &access, self.folder)) {
            Some(Err(error @ ResolveError::Tls(_))) => self.add(&["tls"], error),
            Some(Err(error)) => self.add(&["url"], error),
            Some(Ok(_)) | None => {}
        }
    }

    /// Checks the secret headers of the endpoint and of its runs.
    fn headers(&mut self, runs: &[&PlannedRun]) {
        let of_endpoint = self.endpoint.headers.values().filter_map(TextOrSecret::secret).cloned();
        let references: BTreeSet<SecretRef> = of_endpoint.chain(secrets_of(runs.iter().map(|run| &run.spec))).collect();
        for reference in references {
            if let Err(error) = self.readable(Use::Header, &reference) {
                self.add_at(self.place_of_header(&reference), error);
            }
        }
    }

    /// Returns the place of a header whose value is this secret: in the endpoint, or in a scenario.
    fn place_of_header(&self, reference: &SecretRef) -> Vec<Step> {
        let is_meant = |value: &TextOrSecret| value.secret() == Some(reference);
        let of_endpoint = [("endpoints", self.name, &self.endpoint.headers)];
        let of_scenarios = self.plan.scenarios.iter().map(|(name, one)| ("scenarios", name.as_str(), &one.headers));
        let mut tables = of_endpoint.into_iter().chain(of_scenarios);
        let found = tables.find_map(|(kind, name, headers)| {
            let (header, _) = headers.iter().find(|(_, value)| is_meant(value))?;
            Some([kind, name, "headers", header.as_str()].map(Step::from).to_vec())
        });
        found.unwrap_or_else(|| ["endpoints", self.name].map(Step::from).to_vec())
    }

    /// Checks the secrets, the folder, the programs and the expressions of a server to launch.
    fn launch(&mut self, runs: &[&PlannedRun]) {
        let Some(launch) = &self.endpoint.launch else { return };
        for (field, variables) in [("env", &launch.env), ("host_env", &launch.host_env)] {
            for (name, value) in variables {
                if let Some(Err(error)) = value.secret().map(|secret| self.readable(Use::Variable, secret)) {
                    self.add(&["launch", field, name.as_str()], error);
                }
            }
        }
        let folder = launch.folder.as_ref().map_or_else(|| self.folder.to_owned(), |own| self.folder.join(own));
        if !folder.as_os_str().is_empty() && !folder.is_dir() {
            let shown = folder.display();
            let reason = format!("cannot start its server in {shown}: folder not found; correct `launch.folder`");
            return self.add(&["launch", "folder"], reason);
        }
        let mut seen = HashSet::new();
        for run in runs.iter().filter(|run| seen.insert((&run.spec.endpoint.launch, &run.spec.model.id))) {
            self.command(launch, &run.spec, &folder);
        }
    }

    /// Checks the programs and the expressions of a server to launch with the settings of a run.
    fn command(&mut self, launch: &Launch, spec: &RunSpec, folder: &Path) {
        let made = match concrete(self.endpoint, spec, ANY_PORT) {
            Ok(made) => made,
            Err(mistake) => return self.add(&["launch"], mistake),
        };
        let path = launch.env.get("PATH").or(launch.host_env.get("PATH")).and_then(TextOrSecret::text);
        let programs = [("command", made.command.first()), ("stop", made.stop.as_ref().and_then(|stop| stop.first()))];
        for (field, program) in programs {
            if let Some(Err(error)) = program.map(|program| find_program(program, folder, path)) {
                self.add(&["launch", field], error);
            }
        }
    }

    /// Checks the programs of the hooks.
    fn hooks(&mut self, runs: &[&PlannedRun]) {
        if self.endpoint.hooks.is_empty() {
            return;
        }
        let wrong = runs.iter().find_map(|run| hooks::look(self.endpoint, self.folder, run).err());
        if let Some(reason) = wrong {
            self.add(&["hooks"], reason);
        }
    }

    /// Checks that a secret can be read.
    fn readable(&self, used: Use, reference: &SecretRef) -> Result<(), ResolveError> {
        let file = |path: &str| self.folder.join(path);
        match (reference, self.stop) {
            (SecretRef::File(path), _) if file(path).exists() && !file(path).is_file() => Ok(()),
            (SecretRef::Command(_), None) => Ok(()),
            // The servers of other endpoints are probed at the same time, each with its own token.
            (SecretRef::Command(_), Some(_)) if self.endpoint.launch.is_none() => Ok(()),
            (SecretRef::Command(_), Some(stop)) => resolve_until(used, reference, self.folder, stop).map(drop),
            (SecretRef::Env(_) | SecretRef::File(_), _) => resolve_secret(used, reference, self.folder).map(drop),
        }
    }
}
