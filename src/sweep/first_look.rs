//! The first look at all servers of a sweep, at the same time, before anything is sent.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::Target;
use crate::server::{Found, Unready};

use super::ready::Asking;

/// The longest that it takes. Who has not answered by then is asked again when its runs come.
const LONGEST: Duration = Duration::from_secs(10);

/// What an endpoint answers.
type Answer = (String, Result<(Target, Found), Unready>);

/// Servers that are being asked, each once.
pub(crate) struct FirstLook {
    began: Instant,
    /// Name and address of each that has not answered, in the order of the plan.
    unanswered: Vec<(String, String)>,
    answers: Receiver<Answer>,
    /// Those that are ready.
    pub ready: Vec<(String, (Target, Found))>,
    /// Those that no waiting makes ready, each with its reason.
    pub wrong: Vec<(String, String)>,
}

impl FirstLook {
    /// Begins to ask.
    pub(super) fn start(askings: impl Iterator<Item = (String, Asking)>) -> std::io::Result<FirstLook> {
        let (sender, answers) = channel();
        let mut unanswered = Vec::new();
        for (name, asking) in askings {
            unanswered.push((name.clone(), asking.url().unwrap_or_default()));
            let sender = sender.clone();
            // Nobody may listen any longer.
            let look = move || drop(sender.send((name, asking.once())));
            thread::Builder::new().name("look".to_owned()).spawn(look)?;
        }
        Ok(FirstLook { began: Instant::now(), unanswered, answers, ready: Vec::new(), wrong: Vec::new() })
    }

    /// Whether all have answered, or had their time.
    pub(super) fn is_over(&self) -> bool {
        self.unanswered.is_empty() || self.since() > LONGEST
    }

    /// For how long it has gone on.
    pub(super) fn since(&self) -> Duration {
        self.began.elapsed()
    }

    /// Name and address of those that have not answered.
    pub(crate) fn unanswered(&self) -> Vec<(String, String)> {
        self.unanswered.clone()
    }

    /// Takes an answer, if one comes in time.
    pub(super) fn take(&mut self, within: Duration) {
        let (name, answer) = match self.answers.recv_timeout(within) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return,
            // A thread that panicked answers nothing; its endpoint is asked again.
            Err(RecvTimeoutError::Disconnected) => return self.unanswered.clear(),
        };
        self.unanswered.retain(|(other, _)| *other != name);
        match answer {
            Ok(answer) => self.ready.push((name, answer)),
            Err(unready) if unready.is_final => self.wrong.push((name, unready.reason)),
            Err(_) => {}
        }
    }
}
