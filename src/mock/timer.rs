//! A timer that wakes all streams from one timerfd. Tokio's own timer is up to a millisecond late, which
//! would be the largest error of the mock. A separate timerfd for each stream would cost a file descriptor,
//! and three system calls per token.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Returns the time of the monotonic clock, in nanoseconds. All processes on a host read the same clock.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The sleeping tasks, ordered by wake-up time and number. The first one determines when the timerfd fires.
pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
    sleepers: RefCell<BTreeMap<(u64, u64), Waker>>,
    armed: Cell<u64>,
    next: Cell<u64>,
}

impl Timer {
    /// Creates a timer. It wakes no task until [`Timer::drive`] runs.
    pub(super) fn new() -> io::Result<Timer> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: an `OwnedFd` stays open and refers to the same file as long as it exists. The safe
        // constructor is deprecated because it accepts types that do not guarantee this.
        #[expect(unsafe_code, reason = "the safe constructor takes types that promise less than an owned descriptor")]
        let fd = unsafe { AsyncFd::register(fd)? };
        Ok(Timer { fd, sleepers: RefCell::new(BTreeMap::new()), armed: Cell::new(u64::MAX), next: Cell::new(0) })
    }

    /// Wakes the sleeping tasks at their instants. Returns only if the timerfd fails.
    pub(super) async fn drive(self: Rc<Timer>) -> io::Result<()> {
        loop {
            let mut ready = self.fd.readable().await?;
            let mut ticks = [0u8; 8];
            // If the timer was set again in the meantime, there may be nothing to read, which is not an
            // error.
            match rustix::io::read(self.fd.get_ref(), &mut ticks) {
                Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            ready.clear_ready();
            drop(ready);
            self.fire()?;
        }
    }

    /// Returns a future that is ready at `at` on the monotonic clock, or at once if this instant has passed.
    pub(super) fn at(self: &Rc<Timer>, at: u64) -> Sleep {
        Sleep { timer: Rc::clone(self), at, number: None }
    }

    fn fire(&self) -> io::Result<()> {
        let now = now();
        let due = {
            let mut sleepers = self.sleepers.borrow_mut();
            let later = sleepers.split_off(&(now + 1, 0));
            std::mem::replace(&mut *sleepers, later)
        };
        for waker in due.into_values() {
            waker.wake();
        }
        self.armed.set(u64::MAX);
        let first = self.sleepers.borrow().first_key_value().map(|((at, _), _)| *at);
        first.map_or(Ok(()), |at| self.arm(at))
    }

    fn arm(&self, at: u64) -> io::Result<()> {
        let it_value = Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as _ };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        self.armed.set(at);
        Ok(())
    }

    fn add(&self, at: u64, waker: Waker) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.sleepers.borrow_mut().insert((at, number), waker);
        if at < self.armed.get() {
            self.arm(at).expect("a timerfd accepts any instant");
        }
        number
    }
}

/// The future returned by [`Timer::at`]. Dropping it removes the task from the timer.
pub(super) struct Sleep {
    timer: Rc<Timer>,
    at: u64,
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if now() >= self.at {
            return Poll::Ready(());
        }
        match self.number {
            None => self.number = Some(self.timer.add(self.at, context.waker().clone())),
            Some(number) => {
                if let Some(waker) = self.timer.sleepers.borrow_mut().get_mut(&(self.at, number)) {
                    waker.clone_from(context.waker());
                }
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.timer.sleepers.borrow_mut().remove(&(self.at, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_in_order_and_never_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let timer = Rc::new(Timer::new().unwrap());
            tokio::task::spawn_local(Rc::clone(&timer).drive());
            let start = now();
            let order = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = [9u64, 3, 6, 0]
                .into_iter()
                .map(|millis| {
                    let (timer, order) = (Rc::clone(&timer), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        timer.at(start + millis * 1_000_000).await;
                        assert!(now() >= start + millis * 1_000_000);
                        order.borrow_mut().push(millis);
                    })
                })
                .collect();
            drop(timer.at(start + 1));
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*order.borrow(), [0, 3, 6, 9]);
            assert!(timer.sleepers.borrow().is_empty());
        });
    }
}
