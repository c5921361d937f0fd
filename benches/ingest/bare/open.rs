//! The bare reader under a schedule of arrivals: one timerfd, one task per request, kept connections.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use bytes::Bytes;
use http::HeaderValue;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde::{Deserialize, Serialize};
use sweepline::engine::monotonic;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Connection, request};
use crate::seen::Seen;

/// Time from the start to the origin of the schedule, in nanoseconds.
const LEAD: u64 = 20_000_000;

/// The settings of an open loop.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Open {
    /// The mock's port.
    pub port: u16,
    /// Body of every request.
    pub body: String,
    /// A file with the arrivals: a JSON list of nanoseconds since the start, ascending.
    pub schedule: PathBuf,
    /// The start of every `x-request-id`; the position in the schedule follows.
    pub id_prefix: String,
}

/// State shared by all requests.
struct Loop {
    order: Open,
    idle: RefCell<Vec<Connection>>,
    ended: Cell<u64>,
}

/// Sends every request of the schedule and waits for all responses.
pub fn open(order: &Open) -> Seen {
    let text = std::fs::read(&order.schedule).expect("the schedule");
    let schedule: Vec<u64> = serde_json::from_slice(&text).expect("a list of instants");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let origin = monotonic() + LEAD;
    let shared = Rc::new(Loop { order: order.clone(), idle: RefCell::default(), ended: Cell::new(0) });
    tokio::task::LocalSet::new().block_on(&runtime, send(&shared, &schedule, origin));
    Seen { streams: shared.ended.get(), start_monotonic_ns: origin, ..Seen::default() }
}

async fn send(shared: &Rc<Loop>, schedule: &[u64], origin: u64) {
    let timer = Timer::new().expect("a timer");
    let mut tasks = Vec::with_capacity(schedule.len());
    for (number, at) in schedule.iter().enumerate() {
        if monotonic() < origin + at {
            timer.until(origin + at).await.expect("a timer");
        }
        let shared = Rc::clone(shared);
        tasks.push(tokio::task::spawn_local(async move { shared.perform(number).await }));
    }
    for task in tasks {
        task.await.expect("a request of the bare reader");
    }
}

impl Loop {
    async fn perform(&self, number: usize) {
        let Open { port, body, id_prefix, .. } = &self.order;
        let mut request = request(*port, Bytes::copy_from_slice(body.as_bytes()));
        let id = HeaderValue::try_from(format!("{id_prefix}-{number}")).expect("plain text");
        request.headers_mut().insert("x-request-id", id);
        let kept = self.idle.borrow_mut().pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => Connection::open(*port).await,
        };
        connection.stream(request).await;
        self.ended.set(self.ended.get() + 1);
        self.idle.borrow_mut().push(connection);
    }
}

/// An absolute timer on the monotonic clock.
struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    fn new() -> io::Result<Timer> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: the AsyncFd owns the descriptor and deregisters it before closing it; nothing else closes it.
        #[expect(unsafe_code, reason = "the safe constructor takes types that promise less than an owned descriptor")]
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)?;
        Ok(Timer(fd))
    }

    /// Waits until the clock reads `at` nanoseconds.
    async fn until(&self, at: u64) -> io::Result<()> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 };
        let spec = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)?;
        loop {
            let mut guard = self.0.readable().await?;
            let read = guard.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut [0u8; 8])?));
            if let Ok(result) = read {
                return result.map(drop);
            }
        }
    }
}
