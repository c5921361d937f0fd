//! Launches a server of the plan, after determining its port, its environment variables and its command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::expand::RunSpec;
use crate::expand::launch::concrete;
use crate::plan::{Endpoint, SecretRef, TextOrSecret};
use crate::rows::ServerStart;
use crate::server::launch::{LaunchError, LaunchOrder, Launched, free_port, port_taken};
use crate::units::Nanos;
use crate::units::text::quoted;

use super::secrets::variable;

/// The data that is needed to launch the server of a run.
#[derive(Debug, Clone)]
pub(super) struct Launching {
    /// The endpoint of the run.
    pub endpoint: Endpoint,
    /// The spec of a run that needs the server.
    pub spec: Arc<RunSpec>,
    /// The plan's folder.
    pub folder: PathBuf,
    /// The folder for the logs and leases of servers.
    pub servers: PathBuf,
}

/// A server that was started.
#[derive(Debug)]
pub(super) struct Started {
    /// The server, which ends when this value is dropped.
    pub server: Launched,
    /// The base address of the server's API.
    pub url: String,
    /// The command that started the server, quoted for a shell.
    pub command: String,
    /// The spec of a run for which the server was started.
    pub spec: Arc<RunSpec>,
}

/// When a launched server responded for the first time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered {
    /// When the server responded on its readiness path, or with its list of models.
    pub ready: Instant,
    /// When the server had returned its first generation.
    pub first: Instant,
}

/// Why a server was not started.
#[derive(Debug, Clone)]
pub(super) struct NotStarted {
    /// The reason, as text.
    pub reason: String,
    /// Whether the user must change something before trying again.
    pub is_final: bool,
}

impl From<LaunchError> for NotStarted {
    fn from(error: LaunchError) -> NotStarted {
        NotStarted { reason: error.to_string(), is_final: error.is_final() }
    }
}

fn for_good(reason: impl ToString) -> NotStarted {
    NotStarted { reason: reason.to_string(), is_final: true }
}

impl Started {
    /// Returns the record of the server's start, and the time from the start until the server was ready.
    /// `servers` is the folder of the log.
    pub(super) fn ready(&self, Answered { ready, first }: Answered, servers: &Path) -> (ServerStart, Duration) {
        let watch = self.server.watch();
        let since = |at: Instant| Nanos::from(at.saturating_duration_since(watch.started())).0;
        let after = ready.saturating_duration_since(watch.started());
        let name = watch.log().file_name().unwrap_or_default();
        let start = ServerStart {
            at: watch.started_at().to_string(),
            ready_ns: since(ready),
            first_answer_ns: since(first),
            storage_read_bytes: watch.storage_read_bytes(),
            log: Path::new(servers.file_name().unwrap_or_default()).join(name).display().to_string(),
        };
        (start, after)
    }
}

impl Launching {
    /// Starts the server, which may not be ready yet when this returns. With `port: auto`, a free port is
    /// chosen for each start.
    pub(super) fn start(&self) -> Result<Started, NotStarted> {
        let port = self.endpoint.launch_port().map_or_else(free_port, Ok).map_err(for_good)?;
        let url = self.endpoint.launched_url(port).ok_or_else(|| for_good("its `url` is not a valid address"))?;
        let host = reqwest::Url::parse(&url).ok().and_then(|url| url.host_str().map(str::to_owned));
        if let Some(taken) = host.and_then(|host| port_taken(&host, port)) {
            return Err(taken.into());
        }
        let order = self.order(port)?;
        let command = order.command.iter().map(|part| quoted(part)).collect::<Vec<_>>().join(" ");
        Ok(Started { server: Launched::start(&order)?, url, command, spec: Arc::clone(&self.spec) })
    }

    fn order(&self, port: u16) -> Result<LaunchOrder, NotStarted> {
        let made = concrete(&self.endpoint, &self.spec, port).map_err(for_good)?;
        let (mut env, mut secrets, mut secret_references) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        for (name, value) in made.env {
            let text = match value {
                TextOrSecret::Text(text) => text,
                TextOrSecret::Secret(reference) => {
                    let secret = variable(&reference, &self.folder).map_err(for_good)?;
                    secrets.push(secret.clone());
                    secret_references.insert(name.clone(), reference.to_string());
                    secret
                }
            };
            env.insert(name, text);
        }
        Ok(LaunchOrder {
            endpoint: self.spec.endpoint.name.clone(),
            command: made.command,
            env,
            secrets,
            secret_references,
            folder: made.folder.map_or_else(|| self.folder.clone(), |folder| self.folder.join(folder)),
            stop: made.stop,
            stop_within: made.stop_within.into(),
            servers: self.servers.clone(),
        })
    }
}

/// Returns the secret to which a reference in a lease points; `None` if it cannot be read. `folder` is the
/// plan's folder.
pub(crate) fn secret_behind(reference: &str, folder: &Path) -> Option<String> {
    variable(&reference.parse::<SecretRef>().ok()?, folder).ok()
}
