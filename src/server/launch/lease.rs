//! Leases. A lease is a file that describes a running server. If the server's supervisor is killed, a later
//! sweep uses the lease to end the server.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::command::run_within;
use super::order::Order;
use super::processes;
use crate::server::host::host_name;
use crate::units::regular_file;

/// The suffix of lease files.
const SUFFIX: &str = ".lease.json";
/// Maximum size of a lease, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// Extra time for the supervisor to end after its sweep has ended, in addition to the time that the server
/// may take.
const GRACE: Duration = Duration::from_secs(10);
/// Interval between checks whether processes are gone.
const LOOK: Duration = Duration::from_millis(50);
/// How long to wait for a killed process to be gone.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// The description of a running server. It contains no secrets, because only references are stored for
/// secret environment variables.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Lease {
    endpoint: String,
    host: String,
    boot: String,
    supervisor: u32,
    supervisor_started: u64,
    server: Option<u32>,
    mark: String,
    command: Vec<String>,
    stop: Option<Vec<String>>,
    stop_within_ms: u64,
    folder: PathBuf,
    env: BTreeMap<String, String>,
    secret_references: BTreeMap<String, String>,
}

impl Lease {
    /// Creates the lease for this supervisor's server, which has not been started yet.
    pub(super) fn new(order: &Order) -> Lease {
        let own = std::process::id();
        let is_secret = |name: &&String| order.secret_references.contains_key(*name);
        Lease {
            endpoint: order.endpoint.clone(),
            host: host_name(),
            boot: processes::boot(),
            supervisor: own,
            supervisor_started: processes::start_of(own).unwrap_or_default(),
            server: None,
            mark: order.mark.clone(),
            command: order.command.clone(),
            stop: order.stop.clone(),
            stop_within_ms: order.stop_within_ms,
            folder: std::fs::canonicalize(&order.folder).unwrap_or_else(|_| order.folder.clone()),
            env: order.env.iter().filter(|(name, _)| !is_secret(name)).map(|(n, v)| (n.clone(), v.clone())).collect(),
            secret_references: order.secret_references.clone(),
        }
    }

    pub(super) fn started(&mut self, pid: u32) {
        self.server = Some(pid);
    }

    /// Writes the lease atomically, so readers never see an incomplete file.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        let beside = path.with_extension("part");
        std::fs::write(&beside, text)?;
        std::fs::rename(&beside, path)
    }

    pub(super) fn remove(path: &Path) {
        let _ = std::fs::remove_file(path);
    }
}

/// A server that an earlier sweep may have left running.
#[derive(Debug)]
pub struct LeftServer {
    path: PathBuf,
    lease: Lease,
}

/// Returns the servers that earlier sweeps left running, according to the leases in the folder `servers`.
/// Unreadable files are ignored.
pub fn left_servers(servers: &Path) -> Vec<LeftServer> {
    let entries = std::fs::read_dir(servers).into_iter().flatten().flatten();
    let mut left: Vec<LeftServer> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(SUFFIX))
        .filter_map(|path| LeftServer::at(&path))
        .collect();
    left.sort_by(|a, b| a.path.cmp(&b.path));
    left
}

impl LeftServer {
    /// Returns the name of the endpoint that the server was launched for.
    pub fn endpoint(&self) -> &str {
        &self.lease.endpoint
    }

    /// Returns the command that this machine would execute to stop the server; `None` if there is none.
    pub fn stop_command(&self) -> Option<&[String]> {
        self.lease.stop.as_deref().filter(|_| self.lease.host == host_name())
    }

    /// Returns the server of the lease at `path`; `None` if there is no lease or it cannot be read.
    pub(super) fn at(path: &Path) -> Option<LeftServer> {
        let lease = serde_json::from_slice(&regular_file::read(path, MOST_BYTES).ok()?).ok()?;
        Some(LeftServer { path: path.to_owned(), lease })
    }

    /// Ends the remaining processes of the server, and returns a message that states what was done.
    /// `secret` returns the secret value for a reference, or `None` if it is not available.
    pub fn end(self, secret: &dyn Fn(&str) -> Option<String>) -> String {
        let LeftServer { path, lease } = self;
        let Lease { endpoint, host, .. } = &lease;
        if *host != host_name() {
            return format!(
                "endpoint `{endpoint}`: a server that an earlier sweep launched on {host} may still run there; run any \
                 sweep with this results folder on {host}, or end it and remove {}",
                path.display()
            );
        }
        let within = Duration::from_millis(lease.stop_within_ms);
        let is_this_boot = lease.boot == processes::boot();
        let deadline = Instant::now() + within + GRACE;
        // The supervisor's pipe closed when the sweep ended, so a supervisor that is still alive is ending
        // the server now.
        while is_this_boot && processes::is_alive(lease.supervisor, lease.supervisor_started) {
            if Instant::now() >= deadline {
                processes::signal(lease.supervisor, Signal::KILL);
                break;
            }
            std::thread::sleep(LOOK);
        }
        if !path.exists() {
            return format!("endpoint `{endpoint}`: the server that an earlier sweep launched has ended");
        }
        if let Some(stop) = &lease.stop {
            let mut env = lease.env.clone();
            let secrets = lease.secret_references.iter().filter_map(|(name, of)| Some((name.clone(), secret(of)?)));
            env.extend(secrets);
            run_within(stop, &env, &lease.folder, Instant::now() + within);
        }
        if is_this_boot {
            end_marked(&lease.mark, within);
        }
        Lease::remove(&path);
        format!("endpoint `{endpoint}`: ended the server that a killed sweep left running")
    }
}

/// Ends every process with a server's mark: sends TERM, and KILL to the processes that remain after
/// `within`.
fn end_marked(mark: &str, within: Duration) {
    for (signal, within) in [(Signal::TERM, within), (Signal::KILL, KILLED_WITHIN)] {
        let deadline = Instant::now() + within;
        processes::marked(mark).into_iter().for_each(|pid| processes::signal(pid, signal));
        while !processes::marked(mark).is_empty() {
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(LOOK);
        }
    }
}
