//! The work of the graph's nodes. Each node runs on its own thread, and sends its result to the scheduler.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::engine::{
    self, Checked, Depth, EngineError, Finished, Progress, SampleSink, Sink, SinkError, Target, TextSink,
};
use crate::expand::{EndpointSpec, PlannedRun, RunSpec};
use crate::plan::model::content::Content;
use crate::plan::{Endpoint, Engine, ErrorPolicy, MockFigures, SecretRef};
use crate::protocol::Framing;
use crate::rows::{
    Began, Environment, Facts, Journal, ProbePrompt, Record, RowsError, Sample, SampleWriter, ServerStart, SpoilCause,
    Spoiled, TextRow, TextWriter,
};
use crate::server::launch::ServerWatch;
use crate::server::{
    self, Embedded, Found, Gpus, PROMPT, Presence, Question, SelfDescription, Unready, client_environment, gpus, look,
    measure_way, other_version, probe,
};
use crate::store::{Attempt, Commit, StoreError};
use crate::units::Nanos;
use crate::workers::StartCommand;
use crate::workload::tokenizer::Message;
use crate::workload::{Generator, Tokenizer, estimate};

use super::environment;
use super::gpus::gpus_of;
use super::hooks::{HookFailure, Hooking, RunHooks};
use super::live::{renewed, target};
use super::secrets::ResolveError;
use super::sending::Sending;
use super::settle::{Beginning, Leftovers, Settle, Stopped};
use super::telemetry::Beside;
use super::tokenizers::Tokenizers;
use super::tokens::TOKENS;

/// If the preparation of a run takes longer than this, its token may have to be renewed once more before the load.
const SHORT_PREPARATION: Duration = Duration::from_millis(500);

/// Starts an embedded server.
pub fn serve(figures: &MockFigures) -> Result<Embedded, String> {
    Embedded::start(figures).map_err(|error| error.to_string())
}

/// Returns the references to the secrets in the headers of runs with these specs.
pub(crate) fn secrets_of<'a>(specs: impl Iterator<Item = &'a Arc<RunSpec>>) -> Vec<SecretRef> {
    let shapings = specs.flat_map(|spec| spec.mix.iter().map(|class| &class.shaping).chain([&spec.shaping]));
    let references: BTreeSet<&SecretRef> = shapings.flat_map(|shaping| shaping.fields.headers.secrets()).collect();
    references.into_iter().cloned().collect()
}

/// Probes whether an endpoint is ready, and returns its target and the results of the probe. If sweepline
/// started the endpoint's server, `served` contains the server's address and a flag that is true while it
/// runs. If the server rejects a token that was printed earlier, it is probed again with a new token.
pub fn ask(
    endpoint: &Endpoint,
    served: Option<(String, Arc<AtomicBool>)>,
    (spec, of_headers): (&RunSpec, &[SecretRef]),
    folder: &Path,
) -> Result<(Target, Found), Unready> {
    let url = served.as_ref().map(|(url, _)| url.as_str()).or(endpoint.url.as_deref());
    let url = url.ok_or_else(|| Unready::for_good("it has no address"))?;
    let began = Instant::now();
    loop {
        let made = target(endpoint, url, of_headers, folder);
        let mut target = made.map_err(|error| Unready::for_good(error.to_string()))?;
        let answer = ask_target(endpoint, &target, spec);
        // A token that was just printed is rejected for another reason than its age.
        if answer.as_ref().is_err_and(|unready| unready.is_unauthorized) && TOKENS.reject(&target, began) {
            continue;
        }
        let found = answer.map_err(|unready| naming_command(unready, endpoint))?;
        target.alive = served.map(|(_, alive)| alive);
        return Ok((target, found));
    }
}

/// Adds the command that printed a rejected token to the reason why a server is not ready.
fn naming_command(unready: Unready, endpoint: &Endpoint) -> Unready {
    match endpoint.api_key.as_ref().and_then(SecretRef::command) {
        Some(command) if unready.is_unauthorized => {
            Unready { reason: format!("{}; the token was printed by `{command}`", unready.reason), ..unready }
        }
        _ => unready,
    }
}

/// Probes the server of a target once.
fn ask_target(endpoint: &Endpoint, target: &Target, spec: &RunSpec) -> Result<Found, Unready> {
    let question = Question { ready: endpoint.ready_path(), ..question(target, spec) };
    // The embedded mock is not asked for its description, because it is this program itself.
    let ask_what_it_is = || (!endpoint.is_embedded()).then(|| look(&question, endpoint.engine)).flatten();
    let contradiction = |said: &Option<SelfDescription>| environment::contradiction(spec, said.as_ref()?);
    // If the plan declares a version, it is compared with the reported version before any other request is
    // sent.
    let is_declared = spec.endpoint.server.contains_key("version");
    let mut said = if is_declared { ask_what_it_is() } else { None };
    if let Some(reason) = contradiction(&said) {
        return Err(Unready::for_good(reason));
    }
    let found = probe(&question)?;
    if said.is_none() {
        said = ask_what_it_is();
        if let Some(reason) = contradiction(&said) {
            return Err(Unready::for_good(reason));
        }
    }
    let way = measure_way(&question);
    let not_near = way.contradicts_near().filter(|_| endpoint.near);
    Ok(Found { said: said.unwrap_or_default(), way, not_near, ..found })
}

/// Probes whether an endpoint generates with the model of `spec`, without the other checks of [`ask`].
pub(crate) fn ask_for_model(endpoint: &Endpoint, (target, spec): (&Target, &RunSpec)) -> Result<(), Unready> {
    probe(&Question { ready: endpoint.ready_path(), ..question(target, spec) })?;
    Ok(())
}

/// Returns the settings for requests to the server before and during runs like `spec`.
pub fn question(target: &Target, spec: &RunSpec) -> Question {
    Question {
        route: target.route.clone(),
        api_key: target.api_key.as_ref().map(|key| key.reveal().to_owned()),
        headers: target.headers(&target.of_endpoint).map(|(name, value)| [name, value].map(str::to_owned)).collect(),
        secrets: target.secrets.values().chain(&target.earlier).map(|secret| secret.reveal().to_owned()).collect(),
        http2: spec.endpoint.http.is_some(),
        api: spec.endpoint.api,
        ready: None,
        model: spec.model.id.clone(),
        connect: spec.timeouts.connect,
        within: spec.timeouts.request,
    }
}

/// Returns the function with which the engine checks during a run whether the server of `question` is
/// reachable.
pub fn check(question: &Question) -> engine::Check {
    let question = question.clone();
    Arc::new(move |depth| match server::check(&question, depth == Depth::Generation) {
        Presence::Here => Checked::Well,
        Presence::Away(words) => Checked::Away(words),
        Presence::TimedOut => Checked::TimedOut,
    })
}

/// Why a run was not committed.
#[derive(Debug)]
pub enum RunError {
    /// The run was stopped.
    Stopped,
    /// The environment spoiled the run, which may be retried.
    Spoiled(Spoiled),
    /// The run failed; other runs continue.
    Failed(String),
    /// After the run, the server reported a different version than before, so the endpoint is no
    /// longer measured.
    TwoVersions(String),
    /// The results folder cannot store the run, so the sweep cannot continue.
    Store(StoreError),
}

/// How often a run has been spoiled, and how often it is retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retries {
    /// Number of earlier attempts that were spoiled and count towards the limit.
    pub spoiled: u32,
    /// Maximum number of retries; with 0, the run is never given up.
    pub allowed: u32,
}

impl Retries {
    /// Returns the number of retries if the run is given up when this attempt is spoiled too; otherwise
    /// `None`.
    pub(crate) fn given_up_with_this(self) -> Option<u32> {
        (self.allowed > 0 && self.spoiled >= self.allowed).then_some(self.allowed)
    }
}

/// All data that is needed to execute a run.
pub struct Order {
    /// The run.
    pub run: PlannedRun,
    /// The attempt at the run.
    pub attempt: Attempt,
    /// The destination of the requests.
    pub target: Target,
    /// The readiness path of the server; `None` if it has none.
    pub ready: Option<String>,
    /// The results of the probe.
    pub found: Found,
    /// The plan's tokenizers.
    pub tokenizers: Arc<Tokenizers>,
    /// Why the run's committed result is replaced; `None` if the run has no result.
    pub reason: Option<String>,
    /// The number of spoiled attempts and retries.
    pub retries: Retries,
    /// The run's live counters.
    pub(crate) progress: Arc<Progress>,
    /// Becomes true when the run must stop.
    pub stop: watch::Receiver<bool>,
    /// Tracks whether servers may still be working on requests of earlier runs.
    pub(crate) settle: Arc<Settle>,
    /// The handle for watching the server that was launched for the run, and the record of its start;
    /// `None` if no server was launched.
    pub(super) launched: Option<(ServerWatch, ServerStart)>,
    /// The hooks around the run.
    pub(super) hooks: RunHooks,
    /// Start commands of the workers that send the run's load; empty if this process sends the load alone.
    pub(super) starts: Vec<StartCommand>,
    /// The name of the resource that the run's endpoint uses.
    pub resource: String,
    /// Called with a message that states why the run has to wait, for example because the server is not
    /// idle.
    pub tell: Box<dyn Fn(String) + Send>,
}

/// Executes a run and commits it.
pub fn execute(order: Order) -> Result<(), RunError> {
    let Order {
        run,
        attempt,
        target,
        ready,
        found,
        tokenizers,
        reason,
        retries,
        progress,
        stop,
        settle,
        launched,
        hooks,
        starts,
        resource,
        tell,
    } = order;
    let renewed_at = Instant::now();
    let target = match renewed(target, hooks.endpoint.api_key.as_ref(), &hooks.folder, &stop) {
        Ok(target) => target,
        Err(error) => return Err(abandon(attempt, without_token(error), retries)),
    };
    let question = Question { ready: ready.clone(), ..question(&target, &run.spec) };
    let tokenizer = match tokenizers.of(&run.spec, &question) {
        Ok(tokenizer) => tokenizer,
        Err(reason) => {
            if let Some(detail) = launched.as_ref().and_then(|(watch, _)| watch.death()) {
                let spoiled = Spoiled { cause: SpoilCause::ServerDied, detail, retry_after: None };
                let error = with_death(EngineError::Spoiled(spoiled), None, &stop);
                return Err(abandon(attempt, error, retries));
            }
            attempt.fail(&reason).map_err(RunError::Store)?;
            return Err(RunError::Failed(reason));
        }
    };
    let endpoint = &run.spec.endpoint.name;
    let (resource, stopping) = (resource.as_str(), stop.clone());
    let began =
        Beginning { endpoint, resource, question: question.clone(), progress: &progress, stop: stopping, tell: &*tell };
    let began = match settle.before(began) {
        Ok(began) => began,
        Err(Stopped) => return Err(abandon(attempt, EngineError::Stopped, retries)),
    };
    let is_silent = began.as_ref().is_some_and(Began::is_silent);
    if is_silent && run.spec.errors == ErrorPolicy::Environment {
        let waited = Nanos::from_secs(began.map_or(0, |began| began.waited_ns / 1_000_000_000));
        let detail = format!("{} did not respond to a request for one token within {waited}", target.authority());
        let spoiled = Spoiled { cause: SpoilCause::Silent, detail, retry_after: None };
        return Err(abandon(attempt, EngineError::Spoiled(spoiled), retries));
    }
    let probe_prompt = probe_prompt(tokenizer.as_deref(), &run.spec.endpoint, &found);
    let (watch, server_start) = launched.unzip();
    let (said, not_near) = (found.said.clone(), found.not_near.clone());
    let environment = Environment { server_start, ..environment(&target, &run.spec, found) };
    let journal = attempt.journal().map_err(RunError::Store)?;
    let samples = attempt.samples().map_err(RunError::Store)?;
    let texts = run.spec.record.text.then(|| attempt.texts()).transpose().map_err(RunError::Store)?;
    let (sink, left_behind) = Leftovers::of(Box::new(JournalSink::new(journal)));
    let hooking = Hooking { hooks: &hooks, run: &run, target: &target, question: &question, tell: &*tell };
    let mut hook_runs = Vec::new();
    if let Err(failure) = hooking.before(&mut hook_runs, stop.clone()) {
        // The hooks after the run are executed even if a hook before the run has failed.
        let _ = hooking.after(&mut hook_runs);
        return Err(unhooked(attempt, failure, retries));
    }
    // The wait for an idle server and the hooks may have taken longer than a token is valid.
    let again = if renewed_at.elapsed() > SHORT_PREPARATION {
        renewed(target.clone(), hooks.endpoint.api_key.as_ref(), &hooks.folder, &stop)
    } else {
        Ok(target.clone())
    };
    let fresh = match again {
        Ok(fresh) => fresh,
        Err(error) => {
            let _ = hooking.after(&mut hook_runs);
            return Err(abandon(attempt, without_token(error), retries));
        }
    };
    let beside = beside((&hooks.endpoint, &run.spec), (&question, &progress), watch.as_ref(), samples);
    let (samples, beside) = match beside {
        Ok(ready) => ready,
        Err(error) => {
            let _ = hooking.after(&mut hook_runs);
            return Err(abandon(attempt, EngineError::Sink(error), retries));
        }
    };
    let texts = texts.map(|file| Box::new(TextFile(file)) as Box<dyn TextSink>);
    let halted = stop.clone();
    let check = check(&question);
    let check = beside.as_ref().map_or_else(|| Arc::clone(&check), |beside| beside.counting(Arc::clone(&check)));
    let sending = Sending {
        run: &run,
        attempt: &attempt,
        endpoint: &hooks.endpoint,
        folder: &hooks.folder,
        target: fresh.clone(),
        ready,
        tokenizer,
        tokenizers: &tokenizers,
        starts,
        sink: Box::new(sink),
        samples,
        texts,
        check,
    };
    let finished = sending.send(progress, stop);
    let finished = finished.and_then(|finished| scraped(finished, beside));
    if finished.is_ok() {
        settle.after(endpoint, left_behind.load(Ordering::Relaxed));
    }
    let hooked = hooking.after(&mut hook_runs);
    let finished = match finished {
        Ok(finished) => finished,
        Err(error) => {
            if matches!(&error, EngineError::Spoiled(spoiled) if spoiled.cause == SpoilCause::Unauthorized) {
                TOKENS.reject(&fresh, Instant::now());
            }
            return Err(abandon(attempt, with_death(error, watch, &halted), retries));
        }
    };
    let start = environment.server_start.clone().filter(|_| run.spec.start);
    if let (Some(before), Some(now)) = (&said.version, other_version(&question, &said)) {
        let reason = environment::two_versions(endpoint, before, &now);
        attempt.fail(&reason).map_err(RunError::Store)?;
        return Err(RunError::TwoVersions(reason));
    }
    if let Err(failure) = hooked {
        return Err(unhooked(attempt, failure, retries));
    }
    let facts = Facts { began, hooks: hook_runs, not_near, probe_prompt, start, ..finished.facts };
    let commit = Commit {
        environment,
        facts,
        generator_digest: digest(&run.spec),
        samples: finished.samples,
        texts: finished.texts,
        reason,
    };
    attempt.commit(commit).map(drop).map_err(RunError::Store)
}

/// Returns the sink for the run's samples, and the scraper that runs during the run; `None` if the plan
/// requests no telemetry.
fn beside(
    (endpoint, spec): (&Endpoint, &RunSpec),
    (question, progress): (&Question, &Arc<Progress>),
    server: Option<&ServerWatch>,
    file: SampleWriter,
) -> Result<(Box<dyn SampleSink>, Option<Beside>), SinkError> {
    let Some(telemetry) = &endpoint.telemetry else { return Ok((Box::new(SampleFile::new(file)), None)) };
    let gpus = gpus_of(endpoint, spec, server);
    let beside = Beside::start((telemetry, endpoint, gpus), question, progress, file)?;
    Ok((beside.sink(), Some(beside)))
}

/// Ends the scraper and returns the result of the run with its telemetry.
fn scraped(finished: Finished, beside: Option<Beside>) -> Result<Finished, EngineError> {
    let Some(beside) = beside else { return Ok(finished) };
    let (samples, telemetry) = beside.finish().map_err(EngineError::Sink)?;
    let facts = Facts { telemetry: Some(telemetry), ..finished.facts };
    Ok(Finished { facts, samples, ..finished })
}

/// Ends an attempt because a hook failed, or because the sweep was stopped while a hook ran.
fn unhooked(attempt: Attempt, failure: HookFailure, retries: Retries) -> RunError {
    match failure {
        HookFailure::Stopped => abandon(attempt, EngineError::Stopped, retries),
        HookFailure::Failed(reason) => match attempt.fail(&reason) {
            Ok(()) => RunError::Failed(reason),
            Err(error) => RunError::Store(error),
        },
    }
}

/// Returns a digest of everything that determines a run's texts, except the nonce. For a mix, the digest
/// covers all classes with their weights.
fn digest(spec: &RunSpec) -> String {
    let of = |content: &Content| Generator::new(content, spec.seed, spec.repeat, None).digest();
    if spec.mix.is_empty() {
        return of(&spec.scenario);
    }
    let mut hash = Sha256::new();
    spec.mix.iter().for_each(|class| hash.update(format!("{} {}\n", class.weight, of(&class.scenario))));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the length of the probe's prompt by our count, which may be an estimate, and by the server's count;
/// `None` if the server does not count. Also `None` for a mock without a tokenizer, because a mock counts
/// words, and an estimate cannot be checked against a count of words.
fn probe_prompt(tokenizer: Option<&Tokenizer>, endpoint: &EndpointSpec, found: &Found) -> Option<ProbePrompt> {
    let ours = match (tokenizer, endpoint.api.protocol().framing()) {
        (None, _) if endpoint.engine == Engine::Mock => return None,
        (None, _) => estimate(PROMPT),
        (Some(tokenizer), Framing::Chat) => tokenizer.chat_tokens(&[Message { role: "user", content: PROMPT }]).ok()?,
        (Some(tokenizer), Framing::Text) => tokenizer.text_tokens(PROMPT).ok()?,
    };
    Some(ProbePrompt { ours: ours.into(), server: found.prompt_tokens? })
}

/// If the server ended during the run, adds to the error how it ended. If the sweep was also stopped,
/// returns the error of a stopped run instead.
fn with_death(error: EngineError, watch: Option<ServerWatch>, stop: &watch::Receiver<bool>) -> EngineError {
    match error {
        EngineError::Spoiled(spoiled) if spoiled.cause == SpoilCause::ServerDied => {
            if is_stopped_soon(stop) {
                return EngineError::Stopped;
            }
            let detail = watch.and_then(|watch| watch.death()).unwrap_or(spoiled.detail);
            EngineError::Spoiled(Spoiled { detail, ..spoiled })
        }
        other => other,
    }
}

/// Whether the sweep is stopped now or within a second. The function waits for up to a second because Slurm
/// preempts a job by sending a signal to all of its processes, so the server may end before this process
/// notices the signal.
fn is_stopped_soon(stop: &watch::Receiver<bool>) -> bool {
    const MOMENT: Duration = Duration::from_secs(1);
    let until = Instant::now() + MOMENT;
    while !*stop.borrow() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    *stop.borrow()
}

/// Returns the error of an attempt whose token could not be renewed. The environment has spoiled the attempt.
fn without_token(error: ResolveError) -> EngineError {
    match error {
        ResolveError::Stopped => EngineError::Stopped,
        error => {
            let detail = error.to_string();
            EngineError::Spoiled(Spoiled { cause: SpoilCause::Unauthorized, detail, retry_after: None })
        }
    }
}

/// Ends the attempt without a commit, and records the reason.
fn abandon(attempt: Attempt, error: EngineError, retries: Retries) -> RunError {
    let reason = error.to_string();
    let failure = match error {
        EngineError::Stopped => RunError::Stopped,
        EngineError::Spoiled(spoiled) => {
            return match attempt.spoil(spoiled.clone(), retries.given_up_with_this()) {
                Ok(()) => RunError::Spoiled(spoiled),
                Err(error) => RunError::Store(error),
            };
        }
        EngineError::Sink(error) => match error.downcast::<RowsError>() {
            Ok(error) => {
                let error = StoreError::from(*error);
                // An error is ignored here: on a full disk, even the reason may not fit, and the first
                // error is the one to report.
                let _ = attempt.fail(&error.to_string());
                return RunError::Store(error);
            }
            Err(error) => RunError::Failed(error.to_string()),
        },
        _ => RunError::Failed(reason.clone()),
    };
    let note = if matches!(failure, RunError::Stopped) { "interrupted" } else { &reason };
    match attempt.fail(note) {
        Ok(()) => failure,
        Err(error) => RunError::Store(error),
    }
}

fn environment(target: &Target, spec: &RunSpec, found: Found) -> Environment {
    // The address of an embedded server is not recorded, because its port is different each time.
    let host = target.alive.is_none().then(|| target.authority().to_owned());
    let Gpus { names, driver } = gpus().clone();
    Environment {
        host,
        server: found.server,
        models: found.models,
        fingerprint: found.said.of_model(&spec.model.id),
        client_gpus: names,
        client_gpu_driver: driver,
        connect_ns: found.way.connect_ns,
        tls_ns: found.way.tls_ns,
        round_trip_ns: found.way.round_trip_ns,
        ..client_environment()
    }
}

/// The engine's sink for rows, which writes to a journal.
pub(crate) struct JournalSink(Journal);

impl JournalSink {
    /// Returns a sink that appends to `journal`.
    pub(crate) fn new(journal: Journal) -> JournalSink {
        JournalSink(journal)
    }
}

impl Sink for JournalSink {
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError> {
        Ok(self.0.append(records)?)
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        Ok(self.0.finish()?)
    }
}

/// The engine's sink for samples, which writes to a file.
pub struct SampleFile(SampleWriter);

impl SampleFile {
    /// Returns a sink that writes to `file`.
    pub fn new(file: SampleWriter) -> SampleFile {
        SampleFile(file)
    }
}

impl SampleSink for SampleFile {
    fn append(&mut self, samples: &[Sample]) -> Result<(), SinkError> {
        Ok(self.0.append(samples)?)
    }

    fn finish(self: Box<Self>) -> Result<u64, SinkError> {
        Ok(self.0.finish()?)
    }
}

/// The engine's sink for texts, which writes to a file.
struct TextFile(TextWriter);

impl TextSink for TextFile {
    fn append(&mut self, texts: &[TextRow]) -> Result<(), SinkError> {
        Ok(self.0.append(texts)?)
    }

    fn finish(self: Box<Self>) -> Result<u64, SinkError> {
        Ok(self.0.finish()?)
    }
}
