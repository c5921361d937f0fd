//! Waits for servers: asks one until it is ready, its time is up, or the sweep ends. One bad answer is no verdict.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::Target;
use crate::expand::RunSpec;
use crate::plan::{Endpoint, SecretRef};
use crate::server::{Embedded, Found, Unready};
use crate::units::Nanos;

use super::live::shown;
use super::perform;

/// The pause before the second question; it doubles until [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two questions, where the server asks for none.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How soon a wait sees that the sweep ends.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(20);

/// What is asked of whom.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    /// The server.
    pub endpoint: Endpoint,
    /// The address and the life of its embedded server, if it has one.
    pub served: Option<(String, Arc<AtomicBool>)>,
    /// What a generation is to be like.
    pub spec: Arc<RunSpec>,
    /// Further models of which the server has to know.
    pub(crate) other_models: Vec<String>,
    /// Secrets that headers of its runs have.
    pub secrets: Vec<SecretRef>,
    /// The plan's folder: secrets may lie under it.
    pub folder: PathBuf,
}

/// A server is not ready and will be asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Why it is not ready.
    pub reason: String,
    /// For how long it has been waited for.
    pub waited: Duration,
    /// For how long it may be waited for in all.
    pub within: Duration,
}

/// How a wait ended, and how long it took. Only what was waited after the first question counts.
#[derive(Debug)]
pub(crate) struct ProbeOutcome {
    /// The embedded server that took the place of one that had ended.
    pub embedded: Option<Embedded>,
    /// The target and what the server said of itself, or why it cannot be measured.
    pub answer: Result<(Target, Found), Unready>,
    /// How long it was waited for.
    pub waited: Duration,
}

impl Asking {
    /// Starts an embedded server in the place of one that has ended.
    fn revive(&mut self) -> Option<Embedded> {
        let (_, alive) = self.served.as_ref()?;
        if alive.load(Ordering::Relaxed) {
            return None;
        }
        // Where it does not start, the question says that nobody answers.
        let embedded = perform::serve(&self.endpoint.mock.clone().unwrap_or_default()).ok()?;
        self.served = Some((embedded.url().to_owned(), embedded.alive()));
        Some(embedded)
    }

    /// The address as it is shown; none of an embedded server, which nobody waits for.
    pub(super) fn url(&self) -> Option<String> {
        let url = self.endpoint.url.as_ref().filter(|_| self.served.is_none())?;
        Some(shown(&self.endpoint, url, &self.folder))
    }

    /// Asks once.
    pub(super) fn once(&self) -> Result<(Target, Found), Unready> {
        let (target, found) =
            perform::ask(&self.endpoint, self.served.clone(), (&self.spec, &self.secrets), &self.folder)?;
        // A model that is listed is known. One that is not may be an alias, so it is asked for.
        let is_listed = |model: &&String| found.models.is_empty() || found.models.contains(model);
        for model in self.other_models.iter().filter(|model| !is_listed(model)) {
            let mut spec = RunSpec::clone(&self.spec);
            Arc::make_mut(&mut spec.model).id.clone_from(model);
            perform::ask_for_model(&self.endpoint, (&target, &spec))?;
        }
        Ok((target, found))
    }

    /// Asks until the server is ready, has been waited for `within`, or `halt` turns true; `tell` hears why it is asked again.
    /// Before the first question it leaves the server alone for `pause`, which counts for nothing: the server wants it so.
    pub(super) fn wait(
        mut self,
        pause: Duration,
        within: Duration,
        halt: &watch::Receiver<bool>,
        tell: impl Fn(Waiting),
    ) -> ProbeOutcome {
        rest(pause, halt);
        if *halt.borrow() {
            return ProbeOutcome { embedded: None, answer: Err(Unready::stopped()), waited: Duration::ZERO };
        }
        let embedded = self.revive();
        let mut answer = self.once();
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        while let Err(unready) = &answer {
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() || *halt.borrow() {
                break;
            }
            tell(Waiting { reason: unready.reason.clone(), waited: began.elapsed(), within });
            rest(unready.retry_after.unwrap_or(pause).max(pause).min(left), halt);
            if *halt.borrow() {
                break;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            answer = self.once();
        }
        let whole = self.endpoint.ready_within();
        let late = |unready: Unready| match whole == Nanos::ZERO {
            true => unready,
            false => Unready { reason: format!("not ready within {whole}: {}", unready.reason), ..unready },
        };
        ProbeOutcome { embedded, answer: answer.map_err(late), waited: began.elapsed() }
    }
}

/// Sleeps for `pause`, or until `halt` turns true.
fn rest(pause: Duration, halt: &watch::Receiver<bool>) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !*halt.borrow() {
        std::thread::sleep(LOOK_UP.min(until.saturating_duration_since(Instant::now())));
    }
}
