//! The server: what its connections share, the accept loop, and its end.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::{LocalSet, spawn_local};

use super::answer;
use super::arrival::{By, Reader, ask_for_stamps};
use super::cache::Cache;
use super::config::Config;
use super::conn::Conn;
use super::fault::{self, Kind};
use super::log::{Entry, Line, Log, LogWriter, Outcome};
use super::timer::{Timer, now};

/// Pause after a failed accept: out of file descriptors, trying again at once would only burn the core.
const ACCEPT_PAUSE: u64 = 10_000_000;

/// Why the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Shutdown,
    /// The fault `exit` struck: the program is to end as if it had crashed.
    Fault,
}

/// What the connections of one server share; everything runs on one thread.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) timer: Rc<Timer>,
    /// Slots, handed out first come, first served.
    pub(super) slots: Arc<Semaphore>,
    /// The prefix cache, where there is one.
    pub(super) cache: Option<Rc<RefCell<Cache>>>,
    pub(super) reader: RefCell<Reader>,
    pub(super) log: Log,
    pub(super) exit: Notify,
    requests: Cell<u64>,
    /// Begin and end of the pause of all streams, the latest.
    pause: Cell<(u64, u64)>,
    /// Requests that wait for a slot.
    waiting: Cell<u64>,
}

impl Shared {
    fn new(config: Config, log: Log) -> io::Result<Shared> {
        Ok(Shared {
            timer: Rc::new(Timer::new()?),
            slots: Arc::new(Semaphore::new(config.slots as usize)),
            cache: config.prefix_cache.map(|tokens| Rc::new(RefCell::new(Cache::new(tokens, config.prefix_block)))),
            reader: RefCell::new(Reader::new(log.on())),
            log,
            exit: Notify::new(),
            requests: Cell::new(0),
            pause: Cell::new((0, 0)),
            waiting: Cell::new(0),
            config,
        })
    }

    /// The number of the generation request that has just arrived, from 1.
    pub(super) fn next_request(&self) -> u64 {
        self.requests.set(self.requests.get() + 1);
        self.requests.get()
    }

    /// Pauses all streams from now on for so many milliseconds.
    pub(super) fn pause(&self, millis: u32) {
        let from = now();
        self.pause.set((from, from + u64::from(millis) * 1_000_000));
    }

    /// When what was planned for an instant may be done: at the end of a pause, where one has begun before.
    pub(super) fn after_pause(&self, planned: u64) -> u64 {
        let (from, to) = self.pause.get();
        if planned >= from { planned.max(to) } else { planned }
    }

    /// Requests that wait for a slot.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.get()
    }

    /// Counts one more request that waits for a slot, for as long as what it returns is kept.
    pub(super) fn wait(self: &Rc<Self>) -> Waiting {
        self.waiting.set(self.waiting.get() + 1);
        Waiting(Rc::clone(self))
    }

    /// Slots that are taken.
    pub(super) fn busy(&self) -> usize {
        self.config.slots as usize - self.slots.available_permits()
    }
}

/// A request that waits for a slot.
pub(super) struct Waiting(Rc<Shared>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

/// A server that is ready to take connections.
pub struct Server {
    shared: Rc<Shared>,
    listener: TcpListener,
    writer: Option<LogWriter>,
}

impl Server {
    /// Opens the log and makes the timer; wants to be called within a current-thread runtime of tokio with I/O, before
    /// anybody is told of `listener`: the kernel takes a moment to begin with its stamps.
    ///
    /// # Errors
    /// The log cannot be created, or the kernel gives no timer.
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

    /// Serves until `shutdown` is ready or a fault ends the server; the log is complete when this returns.
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
        // Ends the requests that are still at work; each of them hands in its line.
        drop(local);
        let written = writer.map_or(Ok(()), LogWriter::finish);
        ended.and_then(|ended| written.map(|()| ended))
    }
}

/// Never ends; without a listener nothing more is accepted, and the kernel refuses.
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
    // Without it Nagle's algorithm would hold tokens back. It fails only on a connection that is gone already.
    let _ = stream.set_nodelay(true);
    let conn = Conn::new(stream, number, peer_port, Rc::clone(shared));
    match fault::of_connection(&shared.config.faults, number, shared.config.seed.0) {
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
