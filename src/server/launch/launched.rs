//! Starts, watches and ends a server on behalf of a sweep.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::TryRng;
use rand::rngs::SysRng;

use super::lease::LeftServer;
use super::log;
use super::order::{LaunchOrder, Order, Said};
use super::processes;
use crate::rows::{BEFORE_READY, LAST_LINES};
use crate::server::own_program::own_program;
use crate::units::Nanos;

/// The hidden command that runs this program as a supervisor.
pub const SUPERVISE: &str = "supervise";
/// Number of lines at the end of a server's output that an error quotes.
const TAIL_LINES: usize = 8;
/// Ports below those that systems assign by default (Linux: 32768 and above; macOS: 49152 and above) and below the node
/// ports of Kubernetes (30000 and above).
const UNASSIGNED_PORTS: std::ops::Range<u16> = 20_000..30_000;
/// How many of these ports are tried before the system assigns one.
const MOST_TRIED: usize = 100;
/// Time limit for the connection that shows whether something listens on a port.
const PORT_TRIAL: Duration = Duration::from_millis(300);
/// A server that rejects its settings exits within this time. Engines may take several seconds to load their
/// libraries before they read their arguments.
const AT_ONCE: Duration = Duration::from_secs(20);
/// Extra time for the supervisor to end, in addition to the time that the server may take. After that, the
/// supervisor is killed.
const GRACE: Duration = Duration::from_secs(15);

/// Why a server is not running.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The program does not exist.
    #[error("cannot start `{program}`: program not found{place}; install it, or correct `launch.command`")]
    NoProgram {
        /// The program as written in the plan.
        program: String,
        /// Where the program was looked for.
        place: String,
    },
    /// The operating system cannot start the program.
    #[error("cannot start `{program}`: {reason}; correct `launch`")]
    NotStarted {
        /// The program as written in the plan.
        program: String,
        /// The reason.
        reason: String,
    },
    /// The system has no `/proc` or no `/dev/null`, as in a bare chroot.
    #[error("cannot start `{program}`: this system has no {missing}, which servers need; mount /proc and /dev")]
    BareSystem {
        /// The program as written in the plan.
        program: String,
        /// The file that does not exist.
        missing: &'static str,
    },
    /// Another process listens on the server's address.
    #[error("port {port} is taken: another process listens on {address}; stop it, or write `port: auto`")]
    PortTaken {
        /// The port.
        port: u16,
        /// The address that accepted a connection.
        address: String,
    },
    /// The server ended before it was ready.
    #[error("the server ended {how} after {after}, {BEFORE_READY}{tail}")]
    Ended {
        /// The exit code or signal.
        how: String,
        /// How long the server ran.
        after: Nanos,
        /// The last lines of the server's output, and the path of its log.
        tail: String,
    },
    /// The supervisor of the server could not be started, or failed.
    #[error("the server could not be supervised: {0}")]
    Supervisor(String),
}

impl LaunchError {
    /// Whether a retry cannot succeed because the plan or the machine must be changed first.
    pub fn is_final(&self) -> bool {
        match self {
            LaunchError::NoProgram { .. } | LaunchError::NotStarted { .. } => true,
            LaunchError::BareSystem { .. } | LaunchError::PortTaken { .. } => true,
            LaunchError::Ended { .. } | LaunchError::Supervisor(_) => false,
        }
    }
}

/// How a launched server ended before it was ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlyEnd {
    /// The exit code or signal.
    how: String,
    /// How long the server ran.
    after: Duration,
    /// The last lines of the server's output.
    lines: Vec<String>,
}

impl EarlyEnd {
    /// Whether this end shows, together with an earlier end of the same server, that the server rejects its
    /// settings: both times, it exited within `AT_ONCE` with the same exit code other than 0, and printed the same
    /// except for numbers, such as times and process ids.
    pub fn repeats(&self, earlier: &EarlyEnd) -> bool {
        let is_error = self.how.starts_with("with exit code") && self.how != "with exit code 0";
        let is_quick = self.after <= AT_ONCE && earlier.after <= AT_ONCE;
        is_error && is_quick && self.how == earlier.how && !self.lines.is_empty() && self.words() == earlier.words()
    }

    /// Returns the output without its numbers.
    fn words(&self) -> Vec<String> {
        self.lines.iter().map(|line| line.split(|c: char| c.is_ascii_digit()).collect()).collect()
    }
}

/// A server that sweepline started. The server ends when this value is dropped.
#[derive(Debug)]
pub struct Launched {
    supervisor: Child,
    pipe: Option<ChildStdin>,
    watch: ServerWatch,
}

/// The observable state of a launched server. It can be cloned, and remains usable after the [`Launched`]
/// value was dropped.
#[derive(Debug, Clone)]
pub struct ServerWatch {
    alive: Arc<AtomicBool>,
    /// How and when the server's process ended; `None` while it runs.
    ended: Arc<Mutex<Option<(String, Instant)>>>,
    /// Whether all of the server's processes are gone.
    gone: Arc<AtomicBool>,
    log: PathBuf,
    mark: String,
    stop_within: Duration,
    started: Instant,
    started_at: jiff::Timestamp,
}

impl Launched {
    /// Starts a server. The server may not be ready yet when this returns.
    pub fn start(order: &LaunchOrder) -> Result<Launched, LaunchError> {
        let program = order.command.first().cloned().unwrap_or_default();
        find_program(&program, &order.folder, order.env.get("PATH").map(String::as_str))?;
        if let Some(missing) = missing_file() {
            return Err(LaunchError::BareSystem { program, missing });
        }
        let wrong = |error: std::io::Error| LaunchError::Supervisor(error.to_string());
        std::fs::create_dir_all(&order.servers).map_err(wrong)?;
        let own = own_program().map_err(wrong)?;
        let mut supervisor = Command::new(own);
        for name in &order.withheld {
            supervisor.env_remove(name);
        }
        let order = Order::new(order);
        let log = order.log.clone();
        let mut supervisor = supervisor
            .arg(SUPERVISE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The supervisor has its own process group, so that Ctrl-C in a terminal reaches only sweepline.
            .process_group(0)
            .spawn()
            .map_err(wrong)?;
        let mut pipe = supervisor.stdin.take().expect("stdin is piped");
        let mut lines = BufReader::new(supervisor.stdout.take().expect("stdout is piped"));
        let text = serde_json::to_string(&order).map_err(|error| LaunchError::Supervisor(error.to_string()))?;
        let (started, started_at) = (Instant::now(), jiff::Timestamp::now());
        let first = pipe.write_all(format!("{text}\n").as_bytes()).map_err(wrong).and_then(|()| said(&mut lines));
        match first {
            Ok(Said::Started { .. }) => {}
            Ok(Said::Failed { reason }) => {
                let _ = supervisor.wait();
                return Err(LaunchError::NotStarted { program, reason });
            }
            Ok(Said::Ended { how }) => {
                let _ = supervisor.wait();
                return Err(LaunchError::Supervisor(format!("its first message was that the server ended {how}")));
            }
            Err(error) => {
                let _ = supervisor.kill();
                let _ = supervisor.wait();
                return Err(error);
            }
        }
        let watch = ServerWatch {
            alive: Arc::new(AtomicBool::new(true)),
            ended: Arc::default(),
            gone: Arc::default(),
            log,
            mark: order.mark.clone(),
            stop_within: order.stop_within(),
            started,
            started_at,
        };
        let secrets = order.secrets_by_reference();
        listen(lines, watch.clone(), order.lease.clone(), secrets).map_err(wrong)?;
        Ok(Launched { supervisor, pipe: Some(pipe), watch })
    }

    /// Returns the server's observable state.
    pub fn watch(&self) -> &ServerWatch {
        &self.watch
    }

    /// Ends the server and waits until all of its processes are gone.
    pub fn end(self) {
        drop(self);
    }
}

impl ServerWatch {
    /// Returns a flag that becomes false when the server's process has ended.
    pub fn alive(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.alive)
    }

    /// Returns the time at which the server was started, on a monotonic clock.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Returns the time at which the server was started, on the wall clock.
    pub fn started_at(&self) -> jiff::Timestamp {
        self.started_at
    }

    /// Returns the path of the log that contains the server's output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Returns the maximum time that ending the server may take.
    fn longest_end(&self) -> Duration {
        self.stop_within.saturating_mul(2) + GRACE
    }

    /// Waits until all processes of a server that has ended are gone, because its child processes may still
    /// hold its port and its devices.
    pub fn wait_until_gone(&self) {
        let deadline = Instant::now() + self.longest_end();
        while !self.gone.load(Ordering::Relaxed) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns how the server's process ended, for example `with exit code 1`; `None` while it
    /// runs.
    pub fn ended(&self) -> Option<String> {
        self.ended.lock().ok()?.as_ref().map(|(how, _)| how.clone())
    }

    /// Returns the error for a server that ended before it was ready; `None` while the server runs.
    pub fn early_end(&self) -> Option<LaunchError> {
        let (how, at) = self.ended.lock().ok()?.clone()?;
        let after = Nanos::from(at.saturating_duration_since(self.started));
        Some(LaunchError::Ended { how, after: rounded(after), tail: self.tail() })
    }

    /// Returns how the server ended before it was ready; `None` while it runs.
    pub fn how_it_ended(&self) -> Option<EarlyEnd> {
        let (how, at) = self.ended.lock().ok()?.clone()?;
        let after = at.saturating_duration_since(self.started);
        Some(EarlyEnd { how, after, lines: log::tail(&self.log, TAIL_LINES) })
    }

    /// Whether a process of this machine belongs to the server.
    pub fn owns(&self, pid: u32) -> bool {
        processes::carries(pid, &self.mark)
    }

    /// Returns the bytes that the server's processes have read from storage so far; `None` if the system
    /// does not report this.
    pub fn storage_read_bytes(&self) -> Option<u64> {
        processes::storage_read_bytes(&self.mark)
    }

    /// Returns the message for a server that ended during a run; `None` while the server runs.
    pub fn death(&self) -> Option<String> {
        Some(format!("the server ended {}{}", self.ended()?, self.tail()))
    }

    /// Returns the last lines of the server's output and the path of its log, to append to a message.
    pub fn tail(&self) -> String {
        let place = self.log.display();
        match log::tail(&self.log, TAIL_LINES) {
            lines if lines.is_empty() => format!("; it printed nothing (log: {place})"),
            lines => format!("{LAST_LINES} (log: {place}):\n  {}", lines.join("\n  ")),
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // Closing the pipe makes the supervisor end the server.
        self.pipe = None;
        let deadline = Instant::now() + self.watch.longest_end();
        while Instant::now() < deadline {
            match self.supervisor.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                // If the supervisor was killed, the thread that listens to it ends the server.
                _ => return self.watch.wait_until_gone(),
            }
        }
        // The supervisor hangs, so it is killed. Its lease remains, and the next sweep ends the remaining
        // processes.
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
    }
}

/// Rounds a time up to a hundredth of a second, for messages.
fn rounded(time: Nanos) -> Nanos {
    const HUNDREDTH: u64 = 10_000_000;
    Nanos(time.0.div_ceil(HUNDREDTH) * HUNDREDTH)
}

fn said(lines: &mut impl BufRead) -> Result<Said, LaunchError> {
    let mut line = String::new();
    let read = lines.read_line(&mut line).map_err(|error| LaunchError::Supervisor(error.to_string()))?;
    if read == 0 {
        return Err(LaunchError::Supervisor("it exited without a message".to_owned()));
    }
    serde_json::from_str(&line)
        .map_err(|error| LaunchError::Supervisor(format!("unexpected message `{}`: {error}", line.trim())))
}

/// Starts a thread that waits for the end of the server and of its supervisor, and records both. If the
/// supervisor was killed, the thread ends the remaining processes, which it finds by the supervisor's
/// lease.
fn listen(
    mut lines: impl BufRead + Send + 'static,
    watch: ServerWatch,
    lease: PathBuf,
    secrets: BTreeMap<String, String>,
) -> std::io::Result<()> {
    std::thread::Builder::new().name("server watch".to_owned()).spawn(move || {
        let how = loop {
            match said(&mut lines) {
                Ok(Said::Ended { how }) => break how,
                Ok(_) => {}
                Err(_) => break "because its supervisor, a process of sweepline, was killed".to_owned(),
            }
        };
        if let Ok(mut ended) = watch.ended.lock() {
            *ended = Some((how, Instant::now()));
        }
        watch.alive.store(false, Ordering::Relaxed);
        let _ = std::io::copy(&mut lines, &mut std::io::sink());
        // A supervisor that ended normally has removed its lease, so if the lease still exists, the
        // supervisor was killed.
        if let Some(left) = LeftServer::at(&lease) {
            left.end(&|reference| secrets.get(reference).cloned());
        }
        watch.gone.store(true, Ordering::Relaxed);
    })?;
    Ok(())
}

/// Checks that a program exists. A name with a `/` is a path relative to `folder`; any other name is looked
/// up in `path` or, if this is `None`, in sweepline's own `PATH`.
pub fn find_program(program: &str, folder: &Path, path: Option<&str>) -> Result<(), LaunchError> {
    let no = |place: String| LaunchError::NoProgram { program: program.to_owned(), place };
    if program.contains('/') {
        let whole = folder.join(program);
        return if whole.is_file() { Ok(()) } else { Err(no(format!(" at {}", whole.display()))) };
    }
    let path = path.map_or_else(|| std::env::var_os("PATH").unwrap_or_default(), Into::into);
    match std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        true => Ok(()),
        false => Err(no(" in PATH".to_owned())),
    }
}

/// Returns a file that every launched server needs and that this system lacks; `None` if all of them exist.
/// `/proc` is needed to list a server's processes, and `/dev/null` is their standard input.
fn missing_file() -> Option<&'static str> {
    let needed: &[&str] = if cfg!(target_os = "linux") { &["/proc/self/stat", "/dev/null"] } else { &["/dev/null"] };
    needed.iter().copied().find(|path| !Path::new(path).exists())
}

/// Returns a random port that is currently free on the loopback interface. By default, the system does not give it to
/// processes that ask for any port, so none of them gets it before the server listens.
pub fn free_port() -> std::io::Result<u16> {
    let free = |port| Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr()?.port());
    let some = || {
        let number = SysRng.try_next_u32().ok()? % u32::from(UNASSIGNED_PORTS.end - UNASSIGNED_PORTS.start);
        free(UNASSIGNED_PORTS.start + u16::try_from(number).ok()?).ok()
    };
    (0..MOST_TRIED).find_map(|_| some()).map_or_else(|| free(0), Ok)
}

/// Returns an error if another process already listens on this host and port; `None` if the port is free.
pub fn port_taken(host: &str, port: u16) -> Option<LaunchError> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().into_iter().flatten().collect();
    let answers = |address: &SocketAddr| TcpStream::connect_timeout(address, PORT_TRIAL).is_ok();
    let address = addresses.into_iter().find(answers)?;
    Some(LaunchError::PortTaken { port, address: address.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(how: &str, seconds: u64, lines: &[&str]) -> EarlyEnd {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        EarlyEnd { how: how.to_owned(), after: Duration::from_secs(seconds), lines }
    }

    #[test]
    fn only_the_same_quick_error_twice_is_a_rejection() {
        let usage = ["12:00:01 usage: serve [-h]", "error: unrecognized arguments: --no-such-flag"];
        let again = ["12:00:05 usage: serve [-h]", "error: unrecognized arguments: --no-such-flag"];
        let first = end("with exit code 2", 1, &usage);
        assert!(end("with exit code 2", 2, &again).repeats(&first));
        for other in [
            end("with exit code 1", 2, &again),
            end("with exit code 2", 21, &again),
            end("with exit code 2", 2, &again[1..]),
            end("by signal 9 (killed: out of memory, or by hand)", 2, &again),
        ] {
            assert!(!other.repeats(&first), "{other:?}");
            assert!(!first.repeats(&other), "{other:?}");
        }
        for how in ["with exit code 0", "by signal 11"] {
            assert!(!end(how, 1, &usage).repeats(&end(how, 1, &usage)), "{how}");
        }
        let silent = end("with exit code 1", 1, &[]);
        assert!(!silent.repeats(&silent));
    }
}
