//! Questions to the endpoint besides the load, on threads of their own: they block, the run does not.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::outage::{Checked, Depth};

/// Asks an endpoint whether it is there. Blocks for ten seconds at most.
pub type Check = Arc<dyn Fn(Depth) -> Checked + Send + Sync>;

/// Checks under way.
pub(crate) struct Checks {
    check: Check,
    answer: UnboundedSender<Checked>,
    answers: UnboundedReceiver<Checked>,
    /// An answer that came while the executor waited.
    came: Option<Checked>,
}

impl Checks {
    /// None under way yet.
    pub(crate) fn new(check: Check) -> Checks {
        let (answer, answers) = unbounded_channel();
        Checks { check, answer, answers, came: None }
    }

    /// Begins one. A panic in it, or a system that starts no more threads, is no sign of an outage.
    pub(crate) fn begin(&self, depth: Depth) {
        let (check, answer) = (Arc::clone(&self.check), Answer(Some(self.answer.clone())));
        let begun = std::thread::Builder::new().name("check".to_owned()).spawn(move || answer.tell(check(depth)));
        // Where no thread was started the answer was dropped, which tells.
        drop(begun);
    }

    /// The next answer, where there is one already.
    pub(crate) fn take(&mut self) -> Option<Checked> {
        self.came.take().or_else(|| self.answers.try_recv().ok())
    }

    /// Whether there is one; wakes the task when one comes.
    pub(crate) fn is_answered(&mut self, cx: &mut Context<'_>) -> bool {
        if self.came.is_none()
            && let Poll::Ready(answer) = self.answers.poll_recv(cx)
        {
            self.came = answer;
        }
        self.came.is_some()
    }
}

/// Tells what was found, `Well` where nobody found out.
struct Answer(Option<UnboundedSender<Checked>>);

impl Answer {
    fn tell(mut self, checked: Checked) {
        // Nobody listens any longer where the run is over.
        drop(self.0.take().map(|answer| answer.send(checked)));
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        drop(self.0.take().map(|answer| answer.send(Checked::Well)));
    }
}
