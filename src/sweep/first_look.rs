//! The first probe of all servers of a sweep, at the same time and before any load is sent.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::Target;
use crate::server::{Found, Unready};

use super::ready::Asking;

/// The maximum duration of the first probe. Servers that have not responded by then are probed again
/// before their runs.
const LONGEST: Duration = Duration::from_secs(10);

/// The result of probing an endpoint.
type Answer = (String, Result<(Target, Found), Unready>);

/// The servers that are being probed, each of them once.
pub(crate) struct FirstLook {
    began: Instant,
    /// Name and address of each server that has not responded, in the order of the plan.
    unanswered: Vec<(String, String)>,
    answers: Receiver<Answer>,
    /// The servers that are ready.
    pub ready: Vec<(String, (Target, Found))>,
    /// Servers that do not become ready by waiting, each with its reason.
    pub wrong: Vec<(String, String)>,
}

impl FirstLook {
    /// Starts the probes.
    pub(super) fn start(askings: impl Iterator<Item = (String, Asking)>) -> std::io::Result<FirstLook> {
        let (sender, answers) = channel();
        let mut unanswered = Vec::new();
        for (name, asking) in askings {
            unanswered.push((name.clone(), asking.url().unwrap_or_default()));
            let sender = sender.clone();
            // The receiver may be gone.
            let look = move || drop(sender.send((name, asking.once())));
            thread::Builder::new().name("look".to_owned()).spawn(look)?;
        }
        Ok(FirstLook { began: Instant::now(), unanswered, answers, ready: Vec::new(), wrong: Vec::new() })
    }

    /// Whether all servers have responded or timed out.
    pub(super) fn is_over(&self) -> bool {
        self.unanswered.is_empty() || self.since() > LONGEST
    }

    /// The time since the first probe began.
    pub(super) fn since(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns name and address of the servers that have not responded.
    pub(crate) fn unanswered(&self) -> Vec<(String, String)> {
        self.unanswered.clone()
    }

    /// Takes a result, if one arrives in time.
    pub(super) fn take(&mut self, within: Duration) {
        let (name, answer) = match self.answers.recv_timeout(within) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return,
            // A thread that panicked does not send a result; its endpoint is probed again.
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
