//! The server: its accept loop and its shutdown.

use std::future::Future;
use std::io;
use std::rc::Rc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

use super::answer;
use super::arrival::{By, ask_for_stamps};
use super::config::Config;
use super::conn::Conn;
use super::fault::{self, Kind};
use super::log::{Entry, Line, Log, LogWriter, Outcome};
use super::shared::Shared;
use super::timer::now;

/// Pause after a failed accept, in nanoseconds. Without free file descriptors, retrying at once would only
/// waste CPU time.
const ACCEPT_PAUSE: u64 = 10_000_000;

/// Why the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The server was shut down.
    Shutdown,
    /// The fault `exit` occurred, so the program must end as if it had crashed.
    Fault,
}

/// A server that is ready to accept connections.
pub struct Server {
    shared: Rc<Shared>,
    listener: TcpListener,
    writer: Option<LogWriter>,
}

impl Server {
    /// Opens the log and creates the timer. Must be called within a current-thread tokio runtime with I/O
    /// enabled. Call it before announcing the listener's address, because the kernel takes a moment to
    /// start recording timestamps.
    ///
    /// # Errors
    /// The log cannot be created, or the kernel provides no timer.
    pub fn new(config: Config, listener: TcpListener) -> io::Result<Server> {
        let (log, writer) = match &config.log {
            None => (Log::default(), None),
            Some(path) => LogWriter::start(path).map(|(log, writer)| (log, Some(writer)))?,
        };
        if log.on() {
            ask_for_stamps(&listener)?;
        }
        Ok(Server { shared: Rc::new(Shared::new(config, log)?), listener, writer })
    }

    /// Serves until `shutdown` is ready or a fault ends the server. The log is complete when this returns.
    ///
    /// # Errors
    /// The log could not be written, or the timer failed.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> io::Result<Ended> {
        let Server { shared, listener, writer } = self;
        let local = LocalSet::new();
        let ended = local
            .run_until(async {
                let driver = spawn_local(Rc::clone(&shared.timer).drive());
                let failed = async {
                    match driver.await {
                        Ok(Err(error)) => Err(error),
                        Ok(Ok(())) | Err(_) => Err(io::Error::other("the timer stopped")),
                    }
                };
                tokio::select! {
                    () = shutdown => Ok(Ended::Shutdown),
                    () = shared.exit.notified() => Ok(Ended::Fault),
                    failed = failed => failed,
                    () = accept(listener, &shared) => Ok(Ended::Shutdown),
                }
            })
            .await;
        // This ends the requests that are still in progress, each of which submits its line to the log.
        drop(local);
        let written = writer.map_or(Ok(()), LogWriter::finish);
        ended.and_then(|ended| written.map(|()| ended))
    }
}

/// Accepts connections up to the configured number, then closes the listener, so that the kernel refuses
/// further ones. Never returns.
async fn accept(listener: TcpListener, shared: &Rc<Shared>) {
    let mut number = 0;
    while shared.config.refuse_after.is_none_or(|after| number < after) {
        match listener.accept().await {
            Ok((stream, peer)) => {
                number += 1;
                welcome(stream, number, peer.port(), shared);
            }
            Err(_) => shared.timer.at(now() + ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    std::future::pending().await
}

fn welcome(stream: TcpStream, number: u64, peer_port: u16, shared: &Rc<Shared>) {
    // Without this, Nagle's algorithm would delay tokens. Errors do not matter, because the call
    // fails only on a connection that is already gone.
    let _ = stream.set_nodelay(true);
    let conn = Conn::new(stream, number, peer_port, Rc::clone(shared));
    match fault::of_connection(&shared.config.faults, number, shared.config.seed) {
        None => {
            spawn_local(answer::connection(conn));
        }
        Some(kind) => refuse(&conn, kind),
    }
}

fn refuse(conn: &Conn, kind: Kind) {
    let at = Some(now());
    let line = Line {
        connection: conn.number,
        peer_port: conn.peer_port,
        arrival_ns: at,
        arrival_stamp: Some(By::User),
        done_ns: at,
        fault: Some(kind.to_string()),
        outcome: Outcome::Fault,
        ..Line::default()
    };
    drop(Entry::new(&conn.shared.log, line));
    conn.reset_on_drop();
}
