//! The messages between a sweep and a supervisor. The sweep sends the order as one line of JSON, and the
//! supervisor responds with one line. Later lines from the supervisor report events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A sweep's order to start a server. It contains secrets in plain text, so it does not implement `Debug`.
#[derive(Clone)]
pub struct LaunchOrder {
    /// The endpoint's name.
    pub endpoint: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment variables in addition to those of sweepline itself, with secrets in plain text.
    pub env: BTreeMap<String, String>,
    /// The secret values among the server's environment variables. They are never written to disk.
    pub secrets: Vec<String>,
    /// For each secret variable, the reference to its value. A later sweep looks the value up when it runs
    /// `stop`.
    pub secret_references: BTreeMap<String, String>,
    /// The names of sweepline's own environment variables that the server does not inherit.
    pub withheld: Vec<String>,
    /// The folder in which the command runs.
    pub folder: PathBuf,
    /// The command that ends the server; `None` if the plan sets no such command.
    pub stop: Option<Vec<String>>,
    /// How long the server may take to end before it is killed.
    pub stop_within: Duration,
    /// The folder for the server's log and its lease.
    pub servers: PathBuf,
}

/// The environment variable that marks all processes of a server. It is used to find processes that left
/// the process group.
pub(super) const MARK: &str = "SWEEPLINE_SERVER";

/// The order as it is sent to a supervisor. Because it contains secrets, it is sent through a pipe and does
/// not implement `Debug`.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub endpoint: String,
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub secrets: Vec<String>,
    pub secret_references: BTreeMap<String, String>,
    pub folder: PathBuf,
    pub stop: Option<Vec<String>>,
    pub stop_within_ms: u64,
    pub log: PathBuf,
    pub lease: PathBuf,
    pub mark: String,
}

impl Order {
    /// Creates the message for an order, with new paths for the log and the lease.
    pub(super) fn new(order: &LaunchOrder) -> Order {
        // The supervisor is started without the variables that are withheld.
        let LaunchOrder {
            endpoint,
            command,
            env,
            secrets,
            secret_references,
            withheld: _,
            folder,
            stop,
            stop_within,
            servers,
        } = order.clone();
        let name = unused_name(&servers, &endpoint);
        // If this fails, the path stays relative. The supervisor resolves it correctly, because it has the
        // same current folder as this process.
        let servers = std::fs::canonicalize(&servers).unwrap_or(servers);
        Order {
            command,
            env,
            secrets,
            secret_references,
            folder: if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder },
            stop,
            stop_within_ms: u64::try_from(stop_within.as_millis()).unwrap_or(u64::MAX),
            log: servers.join(format!("{name}.log")),
            lease: servers.join(format!("{name}.lease.json")),
            mark: format!("{name}.{}", std::process::id()),
            endpoint,
        }
    }

    /// Returns a map from each secret's reference, which a lease stores, to the secret's value.
    pub(super) fn secrets_by_reference(&self) -> BTreeMap<String, String> {
        let value = |(name, reference): (&String, &String)| Some((reference.clone(), self.env.get(name)?.clone()));
        self.secret_references.iter().filter_map(value).collect()
    }

    pub(super) fn stop_within(&self) -> Duration {
        Duration::from_millis(self.stop_within_ms)
    }
}

/// Returns an unused name for the log, built from the time and the endpoint's name. The name is a valid file
/// name.
fn unused_name(servers: &Path, endpoint: &str) -> String {
    let safe: String = endpoint.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
    let base = format!("{}-{safe}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S"));
    let names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}-{number}")));
    let is_free = |name: &String| !servers.join(format!("{name}.log")).exists();
    names.take(10_000).find(is_free).unwrap_or(base)
}

/// A message from a supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// The server's process was started.
    Started {
        /// The process id of the server.
        pid: u32,
    },
    /// The server's process could not be started.
    Failed {
        /// The operating system's reason.
        reason: String,
    },
    /// The server's process ended without being stopped.
    Ended {
        /// How the process ended, such as `with exit code 1` or `by signal 9`.
        how: String,
    },
}
