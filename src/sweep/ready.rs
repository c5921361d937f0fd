//! Waits for servers: probes a server until it is ready, its time is up, or the sweep ends. A single bad
//! response does not decide.

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

/// The pause before the second probe; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two probes, unless the server requests one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The pauses between probes while a launched server starts. The time to readiness is a result, so the
/// pauses are 2 % of the time so far, within these bounds.
const PAUSES_OF_A_START: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(250)];
/// How often a wait checks whether the sweep ends.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(20);

/// The inputs of a probe.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    /// The server.
    pub endpoint: Endpoint,
    /// The address and the liveness of the endpoint's server, if sweepline started it.
    pub served: Option<(String, Arc<AtomicBool>)>,
    /// The inputs for launching that server again, if the plan launches it, and the watch of that
    /// server.
    pub(super) launched: Option<(Launching, Option<ServerWatch>)>,
    /// Whether that server was just started and has not been probed yet. If it has ended, the start has
    /// failed.
    pub(super) is_first: bool,
    /// Whether that server is being ended and will be started again, whatever its responses are.
    pub(super) restarts: bool,
    /// The spec of the generation.
    pub spec: Arc<RunSpec>,
    /// Further models that the server must have.
    pub(crate) other_models: Vec<String>,
    /// The secrets in headers of the endpoint's runs.
    pub secrets: Vec<SecretRef>,
    /// The plan's folder, where secrets may be stored.
    pub folder: PathBuf,
}

/// A server is not ready and will be probed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Why the server is not ready.
    pub reason: String,
    /// The time waited so far.
    pub waited: Duration,
    /// The time limit.
    pub within: Duration,
}

/// How a wait ended, and how long it took. Only the time after the first probe is counted.
#[derive(Debug)]
pub(crate) struct ProbeOutcome {
    /// The embedded server that replaced one that had ended.
    pub embedded: Option<Embedded>,
    /// The launched server that replaced one that had ended.
    pub(super) launched: Option<Started>,
    /// The target and the server's description, or why the server cannot be measured.
    pub answer: Result<(Target, Found), Unready>,
    /// The time waited.
    pub waited: Duration,
    /// When a launched server was ready and responded.
    pub(super) answered: Answered,
}

impl Asking {
    /// Starts a server in place of one that has ended.
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
        // If the server does not start, the probe reports that no server responds.
        if let Ok(embedded) = perform::serve(&self.endpoint.mock.clone().unwrap_or_default()) {
            self.served = Some((embedded.url().to_owned(), embedded.alive()));
            outcome.embedded = Some(embedded);
        }
        Ok(())
    }

    /// Returns an error if the launched server ended before it was ready.
    fn early_end(&self) -> Option<Unready> {
        let (_, watch) = self.launched.as_ref()?;
        watch.as_ref()?.early_end().map(|error| Unready::ended(error.to_string(), error.is_final()))
    }

    /// Returns the instant at which a launched server reports that it is ready, if it does.
    fn is_here(&self) -> Option<Instant> {
        let (_, watch) = self.launched.as_ref()?;
        watch.as_ref()?;
        let (url, _) = self.served.as_ref()?;
        let target = target(&self.endpoint, url, &self.secrets, &self.folder).ok()?;
        let question = Question { ready: self.endpoint.ready_path(), ..perform::question(url, &target, &self.spec) };
        is_ready(&question).then(Instant::now)
    }

    /// Returns the reason that a launched server is still starting; a missing response needs no
    /// other reason.
    fn starting(&self) -> Option<String> {
        let (_, watch) = self.launched.as_ref()?;
        Some(format!("it is starting (log: {})", watch.as_ref()?.log().display()))
    }

    /// Returns why the server is not ready, with the remedy if sweepline launched it, because such a
    /// server is known to be running.
    fn in_words(&self, reason: &str) -> String {
        let there = if self.launched.is_some() { "; it runs, but must listen there" } else { IS_IT_THERE };
        reason.replace(IS_IT_THERE, there)
    }

    /// Returns the last lines of a launched server, if it printed any.
    fn tail(&self) -> String {
        self.launched.as_ref().and_then(|(_, watch)| watch.as_ref()).map(ServerWatch::tail).unwrap_or_default()
    }

    /// Returns the address as it is displayed; `None` for an embedded server, which needs no wait.
    pub(super) fn url(&self) -> Option<String> {
        let url = self.endpoint.url.as_ref().filter(|_| self.served.is_none())?;
        Some(shown(&self.endpoint, url, &self.folder))
    }

    /// Probes once.
    pub(super) fn once(&self) -> Result<(Target, Found), Unready> {
        let (target, found) =
            perform::ask(&self.endpoint, self.served.clone(), (&self.spec, &self.secrets), &self.folder)?;
        // A listed model is known to exist. An unlisted model may be an alias, so it is probed.
        let is_listed = |model: &&String| found.models.is_empty() || found.models.contains(model);
        for model in self.other_models.iter().filter(|model| !is_listed(model)) {
            let mut spec = RunSpec::clone(&self.spec);
            Arc::make_mut(&mut spec.model).id.clone_from(model);
            perform::ask_for_model(&self.endpoint, (&target, &spec))?;
        }
        Ok((target, found))
    }

    /// Probes until the server is ready, the time `within` is up, or `halt` turns true, and reports to
    /// `tell` why it probes again. Before the first probe, it sends nothing for `pause`; this time does
    /// not count because the server requested it.
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

/// Sleeps for `pause`, or until the wait is over.
fn rest(pause: Duration, is_over: &dyn Fn() -> bool) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !is_over() {
        std::thread::sleep(LOOK_UP.min(until.saturating_duration_since(Instant::now())));
    }
}
