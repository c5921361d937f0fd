//! The common state of a server's connections.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{Notify, Semaphore};

use super::arrival::Reader;
use super::cache::Cache;
use super::config::Config;
use super::log::Log;
use super::served::Served;
use super::timer::{Timer, now};

/// The common state of a server's connections, all of which run on one thread.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) timer: Rc<Timer>,
    /// The slots, which requests get in the order in which they began to wait.
    pub(super) slots: Arc<Semaphore>,
    /// The prefix cache; `None` if it is not configured.
    pub(super) cache: Option<Rc<RefCell<Cache>>>,
    pub(super) reader: RefCell<Reader>,
    pub(super) log: Log,
    pub(super) exit: Notify,
    /// Counters of the work that the server has done so far.
    pub(super) served: Rc<Served>,
    requests: Cell<u64>,
    /// Number of times that the version was requested.
    version_asked: Cell<usize>,
    /// Start and end of the most recent pause of all streams, in nanoseconds on the monotonic clock.
    pause: Cell<(u64, u64)>,
    /// Number of requests that wait for a slot.
    waiting: Cell<u64>,
}

impl Shared {
    /// Creates the state. Fails if the timer cannot be created.
    pub(super) fn new(config: Config, log: Log) -> io::Result<Shared> {
        Ok(Shared {
            timer: Rc::new(Timer::new()?),
            slots: Arc::new(Semaphore::new(config.slots as usize)),
            cache: config.prefix_cache.map(|tokens| Rc::new(RefCell::new(Cache::new(tokens, config.prefix_block)))),
            reader: RefCell::new(Reader::new(log.on())),
            log,
            exit: Notify::new(),
            served: Rc::new(Served::new()),
            requests: Cell::new(0),
            version_asked: Cell::new(0),
            pause: Cell::new((0, 0)),
            waiting: Cell::new(0),
            config,
        })
    }

    /// Returns the number of the generation request that has just arrived, counted from 1.
    pub(super) fn next_request(&self) -> u64 {
        self.requests.set(self.requests.get() + 1);
        self.requests.get()
    }

    /// Returns the next version to report.
    pub(super) fn next_version(&self) -> &str {
        let asked = self.version_asked.get();
        self.version_asked.set(asked.wrapping_add(1));
        let versions = &self.config.versions;
        if versions.is_empty() { env!("CARGO_PKG_VERSION") } else { &versions[asked % versions.len()] }
    }

    /// Pauses all streams from now on for `millis` milliseconds.
    pub(super) fn pause(&self, millis: u32) {
        let from = now();
        self.pause.set((from, from + u64::from(millis) * 1_000_000));
    }

    /// Returns the time at which an action that is planned for `planned` may be executed. If a pause has
    /// begun by then, the action must wait until the pause ends.
    pub(super) fn after_pause(&self, planned: u64) -> u64 {
        let (from, to) = self.pause.get();
        if planned >= from { planned.max(to) } else { planned }
    }

    /// Returns the number of requests that wait for a slot.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.get()
    }

    /// Counts one more waiting request until the result is dropped.
    pub(super) fn wait(self: &Rc<Self>) -> Waiting {
        self.waiting.set(self.waiting.get() + 1);
        Waiting(Rc::clone(self))
    }

    /// Returns the number of slots in use.
    pub(super) fn busy(&self) -> usize {
        self.config.slots as usize - self.slots.available_permits()
    }
}

/// Counts a request as waiting for a slot until this is dropped.
pub(super) struct Waiting(Rc<Shared>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}
