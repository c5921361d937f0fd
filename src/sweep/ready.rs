//! Waits for servers: probes a server until it is ready, the time limit is reached, or the sweep is
//! stopped. A single failed probe is not final.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::Target;
use crate::expand::RunSpec;
use crate::plan::{Endpoint, SecretRef};
use crate::server::launch::ServerWatch;
use crate::server::{Embedded, Found, IS_IT_THERE, Question, Unready, is_ready};
use crate::units::Nanos;

use super::launching::{Answered, Launching, Started};
use super::live::{shown, target};
use super::perform;

/// The pause before the second probe. Later pauses are twice as long as the previous pause, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two probes, unless the server requests a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The pauses between probes while a launched server starts. A pause is 2 % of the time since the first probe,
/// within these bounds, because the time until the server is ready is a measured result.
const PAUSES_OF_A_START: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(250)];
/// Interval at which a wait checks whether the sweep is stopped.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(20);

/// The data that is needed to probe a server, and to start it again if it has ended.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    /// The server's endpoint in the plan.
    pub endpoint: Endpoint,
    /// If sweepline started the server: its address, and a flag that is true while it runs.
    pub served: Option<(String, Arc<AtomicBool>)>,
    /// If the plan launches the server: the data that is needed to launch it again, and the handle for
    /// watching the current server.
    pub(super) launched: Option<(Launching, Option<ServerWatch>)>,
    /// Whether the server was just started and has not been probed yet. If it has ended, the start has
    /// failed.
    pub(super) is_first: bool,
    /// Whether the server is being ended, so that it is started again before the probe.
    pub(super) restarts: bool,
    /// The spec of a run, which determines the probe's generation.
    pub spec: Arc<RunSpec>,
    /// Ids of other models that the server must have.
    pub(crate) other_models: Vec<String>,
    /// References to the secrets in the headers of the endpoint's runs.
    pub secrets: Vec<SecretRef>,
    /// The plan's folder. Files with secrets are relative to it.
    pub folder: PathBuf,
}

/// The state of a wait for a server that is not ready and will be probed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Why the server is not ready.
    pub reason: String,
    /// How long the sweep has waited for the server so far.
    pub waited: Duration,
    /// The time limit of the wait.
    pub within: Duration,
}

/// The result of waiting for a server.
#[derive(Debug)]
pub(crate) struct ProbeOutcome {
    /// The embedded server that was started because the previous one had ended; `None` if none was started.
    pub embedded: Option<Embedded>,
    /// The server that was launched because the previous one had ended; `None` if none was launched.
    pub(super) launched: Option<Started>,
    /// The target and the results of the probe, or why the server cannot be measured.
    pub answer: Result<(Target, Found), Unready>,
    /// The time from the first probe to the end of the wait.
    pub waited: Duration,
    /// When a launched server was ready, and when it had returned its first generation.
    pub(super) answered: Answered,
}

impl Asking {
    /// Starts the server again if it has ended.
    fn revive(&mut self, outcome: &mut ProbeOutcome) -> Result<(), Unready> {
        if let (true, Some((_, Some(watch)))) = (self.restarts, &self.launched) {
            watch.wait_until_gone();
        }
        if self.served.as_ref().is_none_or(|(_, alive)| alive.load(Ordering::Relaxed)) {
            return Ok(());
        }
        if let Some(ended) = self.early_end().filter(|_| self.is_first) {
            return Err(ended);
        }
        if let Some((launching, watch)) = &mut self.launched {
            if let Some(watch) = watch {
                watch.wait_until_gone();
            }
            let started = launching.start().map_err(|error| Unready::ended(error.reason, error.is_final))?;
            self.served = Some((started.url.clone(), started.server.watch().alive()));
            *watch = Some(started.server.watch().clone());
            outcome.launched = Some(started);
            return Ok(());
        }
        // If the server cannot be started, the probe reports that it does not respond.
        if let Ok(embedded) = perform::serve(&self.endpoint.mock.clone().unwrap_or_default()) {
            self.served = Some((embedded.url().to_owned(), embedded.alive()));
            outcome.embedded = Some(embedded);
        }
        Ok(())
    }

    /// Returns an error if the launched server ended before it was ready; `None` otherwise.
    fn early_end(&self) -> Option<Unready> {
        let (_, watch) = self.launched.as_ref()?;
        let watch = watch.as_ref()?;
        let error = watch.early_end()?;
        Some(Unready { early_end: watch.how_it_ended(), ..Unready::ended(error.to_string(), error.is_final()) })
    }

    /// Returns the current instant if a launched server now reports that it is ready; `None` otherwise.
    fn is_here(&self) -> Option<Instant> {
        let (_, watch) = self.launched.as_ref()?;
        watch.as_ref()?;
        let (url, _) = self.served.as_ref()?;
        let target = target(&self.endpoint, url, &self.secrets, &self.folder).ok()?;
        let question = Question { ready: self.endpoint.ready_path(), ..perform::question(&target, &self.spec) };
        is_ready(&question).then(Instant::now)
    }

    /// Returns the reason for waiting for a launched server, which is that it is still starting; `None` if
    /// no server was launched.
    fn starting(&self) -> Option<String> {
        let (_, watch) = self.launched.as_ref()?;
        Some(format!("it is starting (log: {})", watch.as_ref()?.log().display()))
    }

    /// Adapts the reason why the server is not ready. If sweepline launched the server, the part of the
    /// reason that asks whether the server is running is replaced, because the server is known to be
    /// running.
    fn in_words(&self, reason: &str) -> String {
        let there = if self.launched.is_some() { "; it runs, but must listen there" } else { IS_IT_THERE };
        reason.replace(IS_IT_THERE, there)
    }

    /// Returns the last lines of a launched server's output, for a message; empty if no server was
    /// launched.
    fn tail(&self) -> String {
        self.launched.as_ref().and_then(|(_, watch)| watch.as_ref()).map(ServerWatch::tail).unwrap_or_default()
    }

    /// Returns the address for display; `None` if sweepline started the server.
    pub(super) fn url(&self) -> Option<String> {
        let url = self.endpoint.url.as_ref().filter(|_| self.served.is_none())?;
        Some(shown(&self.endpoint, url, &self.folder))
    }

    /// Probes the server once.
    pub(super) fn once(&self) -> Result<(Target, Found), Unready> {
        let (target, found) =
            perform::ask(&self.endpoint, self.served.clone(), (&self.spec, &self.secrets), &self.folder)?;
        // A model in the server's list is known to exist. A model that is not listed may be an alias, so it
        // is probed.
        let is_listed = |model: &&String| found.models.is_empty() || found.models.contains(model);
        for model in self.other_models.iter().filter(|model| !is_listed(model)) {
            let mut spec = RunSpec::clone(&self.spec);
            Arc::make_mut(&mut spec.model).id.clone_from(model);
            perform::ask_for_model(&self.endpoint, (&target, &spec))?;
        }
        Ok((target, found))
    }

    /// Probes until the server is ready, the time limit `within` is reached, or `halt` becomes true.
    /// Before each further probe, calls `tell` with the reason for waiting. The first probe is sent after
    /// `pause`. This pause does not count towards the time limit, because the server requested it.
    pub(super) fn wait(
        mut self,
        pause: Duration,
        within: Duration,
        halt: &watch::Receiver<bool>,
        tell: impl Fn(Waiting),
    ) -> ProbeOutcome {
        rest(pause, &|| *halt.borrow());
        let mut outcome = ProbeOutcome {
            embedded: None,
            launched: None,
            answer: Err(Unready::stopped()),
            waited: Duration::ZERO,
            answered: now(),
        };
        if *halt.borrow() {
            return outcome;
        }
        if let Err(unready) = self.revive(&mut outcome) {
            outcome.answer = Err(unready);
            return outcome;
        }
        let began = Instant::now();
        let mut ready_at = self.is_here();
        let mut answer = self.once();
        let mut pause = FIRST_PAUSE;
        while let Err(unready) = &answer {
            if let Some(ended) = self.early_end() {
                answer = Err(ended);
                break;
            }
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() || *halt.borrow() || (self.launched.is_some() && unready.is_final) {
                break;
            }
            let reason = self.starting().unwrap_or_else(|| unready.reason.clone());
            tell(Waiting { reason, waited: began.elapsed(), within });
            let is_over = || *halt.borrow() || self.early_end().is_some();
            if self.launched.is_some() {
                let [shortest, longest] = PAUSES_OF_A_START;
                pause = (began.elapsed() / 50).clamp(shortest, longest);
            }
            rest(unready.retry_after.unwrap_or(pause).max(pause).min(left), &is_over);
            if *halt.borrow() {
                break;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            ready_at = ready_at.or_else(|| self.is_here());
            answer = self.once();
        }
        outcome.answered = Answered { ready: ready_at.unwrap_or_else(Instant::now), first: Instant::now() };
        let whole = self.endpoint.ready_within();
        let late = |unready: Unready| match whole == Nanos::ZERO || unready.has_ended || unready.is_final {
            true => unready,
            false => {
                let reason = self.in_words(&unready.reason);
                Unready { reason: format!("not ready within {whole}: {reason}{}", self.tail()), ..unready }
            }
        };
        outcome.waited = began.elapsed();
        outcome.answer = answer.map_err(late);
        outcome
    }
}

fn now() -> Answered {
    Answered { ready: Instant::now(), first: Instant::now() }
}

/// Sleeps for `pause`, or until `is_over` returns true.
fn rest(pause: Duration, is_over: &dyn Fn() -> bool) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !is_over() {
        std::thread::sleep(LOOK_UP.min(until.saturating_duration_since(Instant::now())));
    }
}
