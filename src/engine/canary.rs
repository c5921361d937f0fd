//! Canaries: tasks that only have to wake up on time, every 10 or 20 ms. If a canary is late, nothing else
//! could have been on time either. A late canary on its own thread shows that the machine or the process
//! stood still. A late canary in an I/O thread's loop shows that this thread had no core or was busy with
//! earlier work.
//!
//! A canary that oversleeps counts every tick that it missed, each with its own delay: a stall of one second
//! is a hundred late ticks, not one. Each tick is counted at the instant at which it was due. If a stall
//! extends beyond the end of the measure window, the ticks that were due in the window still count in the
//! window, no matter in which phase the stall ends.

use std::future::poll_fn;

use rustix::io::Errno;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};

use super::clock::Clock;
use super::observe::Observer;
use super::timer::Timer;

/// Time between two ticks of the canary with its own thread, in nanoseconds.
pub(crate) const TICK_NS: u64 = 10_000_000;
/// Time between two ticks of the canary in an I/O thread's loop, in nanoseconds. It is longer because an
/// I/O thread's time is more valuable: a wake-up only for a tick costs it up to 50 µs.
const LOOP_TICK_NS: u64 = 20_000_000;

/// The ticks of one canary. Times are in nanoseconds since the run's start.
#[derive(Debug)]
pub(crate) struct Ticks {
    every: u64,
    next: u64,
}

impl Ticks {
    /// Creates ticks that are due every `every` nanoseconds; the first is due `every` nanoseconds after
    /// `now`.
    pub(crate) fn new(every: u64, now: u64) -> Ticks {
        Ticks { every, next: now + every }
    }

    /// Returns when the next tick is due.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Skips the ticks that were due before `now`, for a caller that was busy with other work.
    pub(crate) fn skip_to(&mut self, now: u64) {
        self.next += now.saturating_sub(self.next).div_ceil(self.every) * self.every;
    }

    /// Takes the ticks that were due by `now`, and returns how late each of them is, in nanoseconds.
    pub(crate) fn take_due(&mut self, now: u64) -> impl Iterator<Item = u64> {
        std::iter::from_fn(move || {
            let late = now.checked_sub(self.next)?;
            self.next += self.every;
            Some(late)
        })
    }
}

/// Asks the kernel to wake the calling thread as precisely as possible. By default, the kernel delays
/// wake-ups by up to 50 µs to combine them with others.
pub(crate) fn be_exact() {
    // If the kernel refuses, wake-ups are up to 50 µs late, which is still far below the delays that matter.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Sleeps until the run's clock reads `at` nanoseconds.
pub(crate) fn sleep_until(clock: Clock, at: u64) {
    let at = clock.origin() + at;
    let time = Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 };
    while clock_nanosleep_absolute(ClockId::Monotonic, &time) == Err(Errno::INTR) {}
}

/// Registers the calling thread with the run as an I/O thread, and starts a canary in the thread's loop. The
/// canary runs as long as the thread's runtime is polled.
pub(crate) fn attend(observer: &Observer, clock: Clock, name: &str) {
    let member = observer.enlist(name);
    let watching = watch_loop(observer.clone(), clock);
    tokio::task::spawn_local(async move {
        watching.await;
        // The thread leaves the run when its runtime ends, whether or not its loop was watched.
        std::future::pending::<()>().await;
        drop(member);
    });
}

async fn watch_loop(observer: Observer, clock: Clock) {
    // Without a free file descriptor, this loop is not watched, and the run's verdict is based on the other
    // canary.
    let Ok(mut timer) = Timer::new() else { return };
    let mut ticks = Ticks::new(LOOP_TICK_NS, clock.now());
    loop {
        let at = Some(clock.origin() + ticks.next());
        if poll_fn(|cx| timer.poll_until(at, cx)).await.is_err() {
            return;
        }
        let now = clock.now();
        ticks.take_due(now).for_each(|late| observer.turns().add(late, observer.is_measured(now - late)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_as_many_late_ticks_as_it_lasted() {
        let mut ticks = Ticks::new(TICK_NS, 5);
        assert_eq!(ticks.take_due(TICK_NS).count(), 0);
        assert_eq!(ticks.take_due(TICK_NS + 5).collect::<Vec<_>>(), [0]);
        let late: Vec<u64> = ticks.take_due(5 * TICK_NS).collect();
        assert_eq!(late, [3 * TICK_NS - 5, 2 * TICK_NS - 5, TICK_NS - 5]);
        assert_eq!(ticks.next(), 5 * TICK_NS + 5);
    }

    #[test]
    fn what_was_due_while_nobody_slept_is_left_out() {
        let mut ticks = Ticks::new(TICK_NS, 0);
        ticks.skip_to(TICK_NS - 1);
        assert_eq!(ticks.next(), TICK_NS);
        ticks.skip_to(3 * TICK_NS + 1);
        assert_eq!(ticks.next(), 4 * TICK_NS);
        assert_eq!(ticks.take_due(4 * TICK_NS).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn nobody_is_woken_early() {
        let clock = Clock::start();
        be_exact();
        sleep_until(clock, 3_000_000);
        assert!(clock.now() >= 3_000_000);
        sleep_until(clock, 0);
    }
}
