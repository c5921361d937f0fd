//! What a sweep and a supervisor say to each other: one line of JSON each way at first, then what happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a server is started with. It holds secrets in the clear, so it cannot be printed.
#[derive(Clone)]
pub struct LaunchOrder {
    /// The endpoint's name.
    pub endpoint: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment variables besides those of sweepline itself, secrets revealed.
    pub env: BTreeMap<String, String>,
    /// The values among them that are secret: written nowhere.
    pub secrets: Vec<String>,
    /// References of secret variables, by name, so that a later sweep can run `stop` with them.
    pub secret_references: BTreeMap<String, String>,
    /// The folder in which it runs.
    pub folder: PathBuf,
    /// The command that ends it, where there is one.
    pub stop: Option<Vec<String>>,
    /// How long it has to end before it is killed.
    pub stop_within: Duration,
    /// Where its log and its lease are written.
    pub servers: PathBuf,
}

/// The variable that all processes of a server carry, so that those that escaped are known.
pub(super) const MARK: &str = "SWEEPLINE_SERVER";

/// What a supervisor is to start. It travels through a pipe, for it holds secrets, and it cannot be printed.
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
    /// An order with a log and a lease of its own.
    pub(super) fn new(order: &LaunchOrder) -> Order {
        let LaunchOrder { endpoint, command, env, secrets, secret_references, folder, stop, stop_within, servers } =
            order.clone();
        let name = unused_name(&servers, &endpoint);
        // What a supervisor is told is looked up from its own folder, which is ours.
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

    /// The values of its secret variables by what stands for them in a lease.
    pub(super) fn secrets_by_reference(&self) -> BTreeMap<String, String> {
        let value = |(name, reference): (&String, &String)| Some((reference.clone(), self.env.get(name)?.clone()));
        self.secret_references.iter().filter_map(value).collect()
    }

    pub(super) fn stop_within(&self) -> Duration {
        Duration::from_millis(self.stop_within_ms)
    }
}

/// A name that no log has yet: time and endpoint, as a file may be called.
fn unused_name(servers: &Path, endpoint: &str) -> String {
    let safe: String = endpoint.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
    let base = format!("{}-{safe}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S"));
    let names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}-{number}")));
    let is_free = |name: &String| !servers.join(format!("{name}.log")).exists();
    names.take(10_000).find(is_free).unwrap_or(base)
}

/// What a supervisor says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// The server's process was started.
    Started {
        /// Its number.
        pid: u32,
    },
    /// It was not.
    Failed {
        /// Why, in the words of the operating system.
        reason: String,
    },
    /// The server's process ended by itself.
    Ended {
        /// `with exit code 1`, `by signal 9`.
        how: String,
    },
}
