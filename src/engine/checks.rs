//! Checks the endpoint while the load runs. The checks block, so they run on separate threads.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::outage::{Checked, Depth};

/// A function that checks whether an endpoint is reachable. It blocks for at most ten seconds.
pub type Check = Arc<dyn Fn(Depth) -> Checked + Send + Sync>;

/// The checks of a run's endpoint that are in progress, and their results.
pub(crate) struct Checks {
    check: Check,
    answer: UnboundedSender<Checked>,
    answers: UnboundedReceiver<Checked>,
    /// A result that arrived while the executor was waiting and has not been taken yet.
    came: Option<Checked>,
}

impl Checks {
    /// Creates an instance without any checks in progress.
    pub(crate) fn new(check: Check) -> Checks {
        let (answer, answers) = unbounded_channel();
        Checks { check, answer, answers, came: None }
    }

    /// Starts a check. If the check panics, or the system cannot start another thread, the result is
    /// `Well`, because neither is a sign of an outage.
    pub(crate) fn begin(&self, depth: Depth) {
        let (check, answer) = (Arc::clone(&self.check), Answer(Some(self.answer.clone())));
        let begun = std::thread::Builder::new().name("check".to_owned()).spawn(move || answer.tell(check(depth)));
        // If no thread was started, the closure was dropped, and with it the sender, which then sends
        // `Well`.
        drop(begun);
    }

    /// Returns the next result, if there already is one.
    pub(crate) fn take(&mut self) -> Option<Checked> {
        self.came.take().or_else(|| self.answers.try_recv().ok())
    }

    /// Whether there is a result; if not, the task is woken when one arrives.
    pub(crate) fn is_answered(&mut self, cx: &mut Context<'_>) -> bool {
        if self.came.is_none()
            && let Poll::Ready(answer) = self.answers.poll_recv(cx)
        {
            self.came = answer;
        }
        self.came.is_some()
    }
}

/// Sends the result of a check; sends `Well` if it is dropped without a result.
struct Answer(Option<UnboundedSender<Checked>>);

impl Answer {
    fn tell(mut self, checked: Checked) {
        // An error only means that the run is over and the receiver is gone.
        drop(self.0.take().map(|answer| answer.send(checked)));
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        drop(self.0.take().map(|answer| answer.send(Checked::Well)));
    }
}
