//! The time limits of one request.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::plan::Timeouts;
use crate::rows::Outcome;

use super::clock::Clock;
use super::io::Stamps;
use super::tally::Failure;

/// How long a request waits for the end of the body after `[DONE]`. Servers send it at once; if it does not come, the
/// request is over, and its connection is read on in the background.
pub(crate) const GRACE: Duration = Duration::from_millis(2);

/// A timer that successive requests reuse, because resetting a timer is cheaper than creating one.
pub(crate) type Timer = Pin<Box<Sleep>>;

/// The request timeout and the stall timeout of one request. The two timeouts share one timer, which is reset
/// only when it fires.
pub(crate) struct Limit {
    clock: Clock,
    timeouts: Timeouts,
    begin: u64,
    end: u64,
    lingers: bool,
    sleep: Timer,
}

impl Limit {
    /// Creates the limits of a request that begins now. Reuses the timer of an earlier request if there is
    /// one.
    pub(crate) fn new(clock: Clock, timeouts: Timeouts, timer: Option<Timer>) -> Limit {
        let begin = clock.now();
        let first = Duration::from_nanos(timeouts.request.0.min(timeouts.stall.0));
        let sleep = match timer {
            Some(mut sleep) => {
                sleep.as_mut().reset(Instant::now() + first);
                sleep
            }
            None => Box::pin(tokio::time::sleep(first)),
        };
        Limit { clock, timeouts, begin, end: begin.saturating_add(timeouts.request.0), lingers: false, sleep }
    }

    /// Returns the timer for reuse by the next request.
    pub(crate) fn into_timer(self) -> Timer {
        self.sleep
    }

    /// Switches to the short limit for the end of the body, once the response itself is complete.
    pub(crate) fn linger(&mut self) {
        if !std::mem::replace(&mut self.lingers, true) {
            self.sleep.as_mut().reset(Instant::now() + GRACE);
        }
    }

    /// Whether only the end of the body is awaited.
    pub(crate) fn lingers(&self) -> bool {
        self.lingers
    }

    /// Polls `step` until it is ready. Fails if a time limit is reached first.
    pub(crate) async fn bound<T>(
        &mut self,
        stamps: &Stamps,
        mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Failure> {
        poll_fn(|cx| {
            if let Poll::Ready(value) = step(cx) {
                return Poll::Ready(Ok(value));
            }
            while self.sleep.as_mut().poll(cx).is_ready() {
                if let Some(failure) = self.reached(stamps) {
                    return Poll::Ready(Err(failure));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Handles the firing of the timer: returns the failure if a limit was reached; otherwise resets the
    /// timer to the next limit.
    fn reached(&mut self, stamps: &Stamps) -> Option<Failure> {
        let now = self.clock.now();
        let timeouts = &self.timeouts;
        let last = self.begin.max(stamps.last_read()).max(stamps.sent().unwrap_or(0));
        let stall_at = last.saturating_add(timeouts.stall.0);
        if self.lingers {
            return Some(Failure::new(Outcome::Stalled, "the body did not end after [DONE]"));
        }
        if now >= self.end {
            return Some(Failure::new(Outcome::Timeout, format!("not done within {}", timeouts.request)));
        }
        if now >= stall_at {
            return Some(Failure::new(Outcome::Stalled, format!("nothing was received for {}", timeouts.stall)));
        }
        let next = self.end.min(stall_at) - now;
        self.sleep.as_mut().reset(Instant::now() + Duration::from_nanos(next));
        None
    }
}
