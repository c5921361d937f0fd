//! The timer for open-loop arrivals: an absolute timerfd. It was measured to be at most tens of
//! microseconds late, while tokio's own timer is a millisecond late.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One timer on the monotonic clock.
pub(crate) struct Timer {
    fd: AsyncFd<OwnedFd>,
    armed: Option<u64>,
}

impl Timer {
    /// Creates a timer that is not set. Fails if the process may not open another file descriptor.
    pub(crate) fn new() -> io::Result<Timer> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: from here on the AsyncFd owns the descriptor and deregisters it before it is closed;
        // nothing else closes or replaces it.
        #[expect(unsafe_code, reason = "the safe constructor takes types that promise less than an owned descriptor")]
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)?;
        Ok(Timer { fd, armed: None })
    }

    /// Becomes ready once the monotonic clock reads `at` nanoseconds; never becomes ready if `at`
    /// is `None`.
    pub(crate) fn poll_until(&mut self, at: Option<u64>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(at) = at else { return Poll::Pending };
        if self.armed != Some(at) {
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            // A zero value would disarm the timer; an instant of 1 ns is long past and fires at once.
            let at_least = at.max(1);
            let value =
                Timespec { tv_sec: (at_least / 1_000_000_000) as i64, tv_nsec: (at_least % 1_000_000_000) as i64 };
            let spec = Itimerspec { it_interval: zero, it_value: value };
            timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)?;
            self.armed = Some(at);
        }
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(cx))?;
            let mut expirations = [0u8; 8];
            if let Ok(result) = guard.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?)) {
                self.armed = None;
                return Poll::Ready(result.map(drop));
            }
        }
    }
}
