//! Runs the hooks of a run and the reset of its server before and after the load. Each result is recorded,
//! and a failure ends the attempt if the plan requires this.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::engine::Target;
use crate::expand::{ConcreteHook, PlannedRun, concrete_hooks};
use crate::plan::model::hooks::method_and_path;
use crate::plan::{Dialect, Endpoint, Engine, HookAction, HookPoint, OnFailure, Reset, Scalar};
use crate::rows::HookRun;
use crate::server::launch::find_program;
use crate::server::{HookEnd, HookLimits, HookStopped, Question, run_command, send_request};
use crate::units::Nanos;

use super::secrets::variable;

/// Time limit for a reset of the server.
const RESET_WITHIN: Nanos = Nanos::from_secs(60);
/// Number of lines at the end of a hook's output that an error quotes.
const TAIL_LINES: usize = 8;

/// The data that the hooks of a run need, as of the time when the run is dispatched.
#[derive(Debug, Clone)]
pub(super) struct RunHooks {
    /// The endpoint of the run.
    pub endpoint: Endpoint,
    /// The plan's folder.
    pub folder: PathBuf,
    /// Whether this is the first run of its cell in this invocation.
    pub is_first: bool,
    /// Whether this is the last run of its cell in this invocation.
    pub is_last: bool,
}

/// Why the attempt ends. If the failure occurs before the load, no load is sent; if it occurs after
/// the load, the result is not kept.
#[derive(Debug)]
pub(super) enum HookFailure {
    /// The sweep was stopped.
    Stopped,
    /// A hook or the reset failed, which ends the attempt; the string gives the reason.
    Failed(String),
}

/// Runs the hooks of a run that is being executed.
pub(super) struct Hooking<'a> {
    /// The data that was collected when the run was dispatched.
    pub hooks: &'a RunHooks,
    /// The run.
    pub run: &'a PlannedRun,
    /// The server of the run.
    pub target: &'a Target,
    /// The settings for requests to the server.
    pub question: &'a Question,
    /// Called with a message about an operation that takes a long time.
    pub tell: &'a dyn Fn(String),
}

impl Hooking<'_> {
    /// Executes the steps before the load: the `before_cell` hooks if this is the first run of its cell,
    /// the `before_run` hooks, and the reset.
    pub(super) fn before(&self, done: &mut Vec<HookRun>, stop: watch::Receiver<bool>) -> Result<(), HookFailure> {
        if self.hooks.is_first {
            self.at(HookPoint::BeforeCell, done, &stop)?;
        }
        self.at(HookPoint::BeforeRun, done, &stop)?;
        self.reset(done, stop)
    }

    /// Executes the steps after the load: the `after_run` hooks, and the `after_cell` hooks if this is the
    /// last run of its cell. All of them run, even if one fails or the sweep is stopped, because they undo
    /// what the hooks before the load began.
    pub(super) fn after(&self, done: &mut Vec<HookRun>) -> Result<(), HookFailure> {
        let (_unused, never) = watch::channel(false);
        let of_run = self.at(HookPoint::AfterRun, done, &never);
        let of_cell = if self.hooks.is_last { self.at(HookPoint::AfterCell, done, &never) } else { Ok(()) };
        of_run.and(of_cell)
    }

    /// Runs the hooks of `point` in their order. Before a run, no more hooks are run after a failure that
    /// ends the attempt.
    fn at(&self, point: HookPoint, done: &mut Vec<HookRun>, stop: &watch::Receiver<bool>) -> Result<(), HookFailure> {
        let hooks =
            concrete_hooks(&self.hooks.endpoint, &self.run.spec, point, Some(self.target.route.address().port()));
        let hooks = hooks.map_err(|mistake| HookFailure::Failed(format!("hooks.{}: {mistake}", point.name())))?;
        let mut result = Ok(());
        for hook in hooks {
            let what = hook.written.to_string();
            let ended = self.happen(point, &hook, stop.clone()).map_err(|HookStopped| HookFailure::Stopped)?;
            let run = recorded(point.name(), what, ended);
            if !run.is_ok() && hook.on_failure == OnFailure::End {
                let failure = HookFailure::Failed(reason(&format!("the {} hook", run.when), &run, ""));
                result = result.and(Err(failure));
            }
            done.push(run);
            if point.is_before() && result.is_err() {
                break;
            }
        }
        result
    }

    fn happen(
        &self,
        point: HookPoint,
        hook: &ConcreteHook,
        stop: watch::Receiver<bool>,
    ) -> Result<HookEnd, HookStopped> {
        let within = hook.within;
        let announce =
            || (self.tell)(format!("waiting for the {} hook `{}` (at most {within})", point.name(), hook.written));
        let secrets = self.secrets();
        let limits = HookLimits { within, secrets: &secrets, stop, announce: &announce };
        match &hook.action {
            HookAction::Command(command) => run_command(command, &self.variables(point), &self.hooks.folder, limits),
            HookAction::Request(request) => {
                let (method, path) = method_and_path(request).unwrap_or(("GET", request));
                send_request(self.question, method, path, limits)
            }
        }
    }

    /// Resets the prefix cache of the server, if the plan requires it. A failure ends the attempt, because
    /// the run would measure a warm cache.
    fn reset(&self, done: &mut Vec<HookRun>, stop: watch::Receiver<bool>) -> Result<(), HookFailure> {
        let engine = self.hooks.endpoint.engine;
        let (Some(Reset::PrefixCache), Some(request)) = (self.hooks.endpoint.reset, Dialect::of(engine).reset) else {
            return Ok(());
        };
        let (method, path) = (request.method, request.path);
        let whole = self.target.route.address().beside_api(path);
        let announce = || (self.tell)(format!("waiting for {method} {path} (at most {RESET_WITHIN})"));
        let secrets = self.secrets();
        let limits = HookLimits { within: RESET_WITHIN, secrets: &secrets, stop, announce: &announce };
        let ended = send_request(self.question, method, &whole, limits);
        let ended = ended.map_err(|HookStopped| HookFailure::Stopped)?;
        let run = recorded("reset", format!("{method} {path}"), ended);
        let result = match run.is_ok() {
            true => Ok(()),
            false => {
                let meaning = format!("; the run would measure a warm cache{}", remedy(&run, engine));
                Err(HookFailure::Failed(reason("the reset of the prefix cache", &run, &meaning)))
            }
        };
        done.push(run);
        result
    }

    /// Returns the environment variables that pass facts about the run to a hook's command.
    fn variables(&self, point: HookPoint) -> Vec<(&'static str, String)> {
        let axes: BTreeMap<&str, &Scalar> = self.run.cell.iter().collect();
        vec![
            ("SWEEPLINE_HOOK", point.name().to_owned()),
            ("SWEEPLINE_RUN_ID", self.run.id.to_string()),
            ("SWEEPLINE_ENDPOINT", self.run.spec.endpoint.name.clone()),
            ("SWEEPLINE_URL", self.target.route.address().to_string()),
            ("SWEEPLINE_SWEEP", self.run.sweep.to_string()),
            ("SWEEPLINE_REPEAT", self.run.repeat.to_string()),
            ("SWEEPLINE_AXES", serde_json::to_string(&axes).unwrap_or_default()),
        ]
    }

    /// Returns the values that no record may contain: the secrets of the endpoint and of the server that
    /// was launched for it.
    fn secrets(&self) -> Vec<String> {
        let launch = self.hooks.endpoint.launch.iter().flat_map(|launch| launch.secrets());
        let of_launch = launch.filter_map(|reference| variable(reference, &self.hooks.folder).ok());
        let of_proxy = self.question.route.secrets().map(str::to_owned);
        self.question.api_key.iter().chain(&self.question.secrets).cloned().chain(of_launch).chain(of_proxy).collect()
    }
}

fn recorded(when: &str, what: String, ended: HookEnd) -> HookRun {
    let HookEnd { outcome, exit_code, status, detail, took, output } = ended;
    HookRun { when: when.to_owned(), what, outcome, exit_code, status, detail, took_ns: took.0, output }
}

/// Returns the reason why an attempt ends: the hook, how it ended, the consequence, and the last lines of
/// its output.
fn reason(name: &str, run: &HookRun, meaning: &str) -> String {
    let lines: Vec<&str> = run.output.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = match &lines[lines.len().saturating_sub(TAIL_LINES)..] {
        [] => String::new(),
        lines => format!("; its last lines:\n  {}", lines.join("\n  ")),
    };
    format!("{name} `{}` failed: {}{meaning}{tail}", run.what, run.ended())
}

/// Returns the remedy if a server rejects the reset request, with a leading `; `; empty if no remedy is
/// known.
fn remedy(run: &HookRun, engine: Engine) -> &'static str {
    match (run.status, engine) {
        (Some(404), Engine::Vllm) => "; start vLLM with VLLM_SERVER_DEV_MODE=1: the path exists only with it",
        _ => "",
    }
}

/// Checks an endpoint's hooks before anything is sent. Fails with the problem, such as a missing program.
pub(super) fn look(endpoint: &Endpoint, folder: &Path, run: &PlannedRun) -> Result<(), String> {
    for point in HookPoint::ALL {
        let hooks = concrete_hooks(endpoint, &run.spec, point, None);
        for hook in hooks.map_err(|mistake| format!("hooks.{}: {mistake}", point.name()))? {
            let HookAction::Command(command) = &hook.action else { continue };
            let Some(program) = command.first().filter(|program| !program.contains("{{")) else { continue };
            if find_program(program, folder, None).is_err() {
                let place = match program.contains('/') {
                    true => format!("at {}", folder.join(program).display()),
                    false => "in PATH".to_owned(),
                };
                let name = point.name();
                return Err(format!(
                    "the {name} hook runs `{program}`, which was not found {place}; install it, or correct `hooks.{name}`"
                ));
            }
        }
    }
    Ok(())
}

/// Tracks which runs are the first and the last of their cells in an invocation.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// For each cell, identified by its sweep and its rank in the plan: the number of runs that have not
    /// ended.
    left: HashMap<(String, Vec<u32>), usize>,
    /// For each cell: the index of the run that was dispatched first.
    first: HashMap<(String, Vec<u32>), usize>,
}

impl Cells {
    /// Creates the tracking for the runs of this invocation.
    pub(super) fn of<'r>(runs: impl Iterator<Item = &'r PlannedRun>) -> Cells {
        let mut cells = Cells::default();
        runs.for_each(|run| cells.add(run));
        cells
    }

    /// Adds a run to this invocation.
    pub(super) fn add(&mut self, run: &PlannedRun) {
        *self.left.entry(key(run)).or_default() += 1;
    }

    /// Records that a run is dispatched, and returns whether it is the first run of its cell, and whether
    /// it is the last. A retry of the first run is also its cell's first run.
    pub(super) fn begin(&mut self, at: usize, run: &PlannedRun) -> (bool, bool) {
        let first = *self.first.entry(key(run)).or_insert(at);
        (first == at, self.left.get(&key(run)).is_none_or(|left| *left <= 1))
    }

    /// Records that a run has ended in this invocation, or was skipped.
    pub(super) fn end(&mut self, run: &PlannedRun) {
        if let Some(left) = self.left.get_mut(&key(run)) {
            *left = left.saturating_sub(1);
        }
    }
}

fn key(run: &PlannedRun) -> (String, Vec<u32>) {
    (run.sweep.to_string(), run.cell.rank().to_vec())
}
