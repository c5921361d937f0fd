//! Probes all servers of a sweep concurrently before any load is sent.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::Target;
use crate::server::{Found, Unready};

use super::ready::Asking;

/// Maximum duration of the first probes. Servers that have not responded by then are probed again before
/// their runs.
const LONGEST: Duration = Duration::from_secs(10);

/// The name of an endpoint, and the result of probing it.
type Answer = (String, Result<(Target, Found), Unready>);

/// The servers that are being probed for the first time, and the results so far.
pub(crate) struct FirstLook {
    began: Instant,
    /// Endpoint name and address of each server that has not responded, in the order of the plan.
    unanswered: Vec<(String, String)>,
    answers: Receiver<Answer>,
    /// The servers that are ready, each with the name of its endpoint.
    pub ready: Vec<(String, (Target, Found))>,
    /// The endpoints for whose servers waiting does not help, each with the reason.
    pub wrong: Vec<(String, String)>,
}

impl FirstLook {
    /// Starts a probe of each server.
    pub(super) fn start(askings: impl Iterator<Item = (String, Asking)>) -> std::io::Result<FirstLook> {
        let (sender, answers) = channel();
        let mut unanswered = Vec::new();
        for (name, asking) in askings {
            unanswered.push((name.clone(), asking.url().unwrap_or_default()));
            let sender = sender.clone();
            // A failed send is ignored, because the receiver may be gone.
            let look = move || drop(sender.send((name, asking.once())));
            thread::Builder::new().name("look".to_owned()).spawn(look)?;
        }
        Ok(FirstLook { began: Instant::now(), unanswered, answers, ready: Vec::new(), wrong: Vec::new() })
    }

    /// Whether all servers have responded or timed out.
    pub(super) fn is_over(&self) -> bool {
        self.unanswered.is_empty() || self.since() > LONGEST
    }

    /// Returns the time since the first probe began.
    pub(super) fn since(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the endpoint name and address of each server that has not responded.
    pub(crate) fn unanswered(&self) -> Vec<(String, String)> {
        self.unanswered.clone()
    }

    /// Waits for the next result for at most `within`, and records it.
    pub(super) fn take(&mut self, within: Duration) {
        let (name, answer) = match self.answers.recv_timeout(within) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return,
            // All threads have ended, but some sent no result because they panicked. Their endpoints are
            // probed again before their runs.
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
