//! Checks of the endpoint alongside the load, on separate threads because they block and the run
//! must not.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::outage::{Checked, Depth};

/// Checks whether an endpoint is reachable. Blocks for at most ten seconds.
pub type Check = Arc<dyn Fn(Depth) -> Checked + Send + Sync>;

/// Checks in progress.
pub(crate) struct Checks {
    check: Check,
    answer: UnboundedSender<Checked>,
    answers: UnboundedReceiver<Checked>,
    /// A result that arrived while the executor waited.
    came: Option<Checked>,
}

impl Checks {
    /// Creates the value without a check in progress.
    pub(crate) fn new(check: Check) -> Checks {
        let (answer, answers) = unbounded_channel();
        Checks { check, answer, answers, came: None }
    }

    /// Starts a check. A panic in it, or a system that cannot start more threads, is not a sign of an outage.
    pub(crate) fn begin(&self, depth: Depth) {
        let (check, answer) = (Arc::clone(&self.check), Answer(Some(self.answer.clone())));
        let begun = std::thread::Builder::new().name("check".to_owned()).spawn(move || answer.tell(check(depth)));
        // If no thread started, dropping the sender reports that.
        drop(begun);
    }

    /// Returns the next result, if there already is one.
    pub(crate) fn take(&mut self) -> Option<Checked> {
        self.came.take().or_else(|| self.answers.try_recv().ok())
    }

    /// Whether there is a result; wakes the task when one arrives.
    pub(crate) fn is_answered(&mut self, cx: &mut Context<'_>) -> bool {
        if self.came.is_none()
            && let Poll::Ready(answer) = self.answers.poll_recv(cx)
        {
            self.came = answer;
        }
        self.came.is_some()
    }
}

/// Sends the result, or `Well` if there is none.
struct Answer(Option<UnboundedSender<Checked>>);

impl Answer {
    fn tell(mut self, checked: Checked) {
        // The receiver is gone if the run is over.
        drop(self.0.take().map(|answer| answer.send(checked)));
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        drop(self.0.take().map(|answer| answer.send(Checked::Well)));
    }
}
