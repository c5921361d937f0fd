//! `sweepline status PLAN` shows the state of a plan, based on the queue and the results folder.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::{self, Job};
use super::paths::submitted;
use super::to_kubernetes;
use super::work::Work;
use crate::cli::changes::Changes;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::output;
use crate::cli::workspace::Workspace;
use crate::report::format::plain;
use crate::report::grid::{grid, lines};
use crate::submit::record::Cluster;
use crate::submit::{Element, JobState, elements};

/// The arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    /// On Kubernetes, submit the jobs whose dependencies have all ended
    #[arg(long)]
    advance: bool,
    #[command(flatten)]
    folder: Folder,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// The state of a plan on its cluster.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The plan's name.
    plan: String,
    /// The elements of the plan. Each element is listed before those that depend on it.
    elements: Vec<OneElement>,
}

/// The state of an element.
#[derive(Debug, Serialize, JsonSchema)]
struct OneElement {
    /// The name of the element: the name of its part, followed by the element's sweeps if the part has
    /// several elements.
    name: String,
    /// The state of the element.
    state: State,
    /// Number of the element's runs for which nothing remains to be done.
    done: usize,
    /// Total number of the element's runs, including runs that depend on the result of an earlier sweep.
    all: usize,
    /// The job of the element: the pending or running one, otherwise the last one; null if none was
    /// submitted.
    job: Option<String>,
    /// The job's state as the cluster reports it. On Slurm it comes from the queue, or otherwise from
    /// the accounting; null if neither lists the job.
    queue: Option<String>,
    /// The node on which the job runs; null if it is not running.
    node: Option<String>,
    /// The exit code that the job has recorded; null if it has not recorded one, and on Kubernetes.
    exit_code: Option<u8>,
    /// The file with the output of the job; null without a job, and on Kubernetes.
    log: Option<PathBuf>,
    /// The next step; null if there is none.
    next: Option<String>,
}

/// The state of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    /// All runs are done.
    Done,
    /// A job is measuring the runs of the element.
    Running,
    /// A job is waiting for resources, or for its turn.
    Queued,
    /// A job is waiting for another job.
    Waiting,
    /// The job has ended successfully, but its results are not in this folder.
    Ended,
    /// The job was cancelled before all runs were done.
    Cancelled,
    /// The job has ended, but not all runs are done.
    Failed,
    /// There are open runs, but no job.
    NotSubmitted,
}

impl State {
    fn words(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Running => "running",
            State::Queued => "queued",
            State::Waiting => "waiting",
            State::Ended => "ended",
            State::Cancelled => "cancelled",
            State::Failed => "failed",
            State::NotSubmitted => "not submitted",
        }
    }
}

/// Prints the state of a plan.
pub(crate) fn run(args: StatusArgs) -> Result<Exit, Failure> {
    let workspace = Workspace::open(&args.plan, &args.changes, &args.folder)?;
    let elements = elements(workspace.plan(), &workspace.expansion).map_err(Failure::Usage)?;
    let mut submissions = submitted(&workspace.store, &args.plan)?;
    let mut jobs = jobs::jobs(&submissions)?;
    if args.advance && to_kubernetes::advance(&mut submissions, &jobs)? {
        jobs = jobs::jobs(&submissions)?;
    }
    let standing = |element: &Element| standing(&args, &workspace, element, jobs::of(&jobs, element));
    let document = Document { plan: plain(&workspace.plan().name), elements: elements.iter().map(standing).collect() };
    match args.format {
        TextOrJson::Json => output::json(&document)?,
        TextOrJson::Text => output::print(&text(&document))?,
    }
    let is_done = document.elements.iter().all(|element| element.state == State::Done);
    Ok(if is_done { Exit::Done } else { Exit::Missing })
}

fn standing(args: &StatusArgs, workspace: &Workspace, element: &Element, job: Option<&Job>) -> OneElement {
    let work = Work::of(workspace, element);
    let queue = job.and_then(|job| job.state.as_ref());
    let state = match job {
        Some(job) if job.is_live() => match queue {
            Some(queue) if queue.is_running() => State::Running,
            Some(queue) if queue.reason.starts_with("Dependency") => State::Waiting,
            _ => State::Queued,
        },
        _ if !work.is_any() => State::Done,
        Some(_) if queue.is_some_and(JobState::is_cancelled) => State::Cancelled,
        Some(Job { on: Cluster::Kubernetes, .. }) if queue.is_some_and(JobState::is_completed) => State::Ended,
        Some(_) => State::Failed,
        None => State::NotSubmitted,
    };
    let exit_code = job.and_then(Job::code);
    let node = queue.filter(|queue| queue.is_running()).map(|queue| queue.node.clone());
    let log = job.and_then(|job| job.element.log.clone());
    OneElement {
        name: plain(&element.name()),
        state,
        done: work.done,
        all: work.all(),
        job: job.map(|job| job.element.job.clone()),
        queue: queue.map(in_words),
        node,
        exit_code,
        next: next(args, state, job, exit_code),
        log,
    }
}

/// Formats the state in the queue, with the reason why a job is waiting.
fn in_words(queue: &JobState) -> String {
    match queue.reason.as_str() {
        "" | "None" => queue.state.clone(),
        reason => format!("{} ({reason})", queue.state),
    }
}

fn next(args: &StatusArgs, state: State, job: Option<&Job>, exit_code: Option<u8>) -> Option<String> {
    let on = match job.map_or(Cluster::Slurm, |job| job.on) {
        Cluster::Slurm => "slurm",
        Cluster::Kubernetes => "kubernetes",
    };
    let plan = args.plan.display();
    let folder = args.folder.typed();
    let again = format!("sweepline submit {plan} --on {on}{folder}");
    match state {
        State::Failed => Some(match exit_code {
            Some(2) => format!("fix the error in the log, then {again}"),
            Some(4) => format!("a gate failed: see the log, or sweepline report {plan}{folder}"),
            Some(5) => format!("see the log and sweepline verify{folder}, then {again}"),
            _ => format!("see the log, then {again} to resume"),
        }),
        State::NotSubmitted | State::Cancelled => Some(again),
        State::Ended => {
            Some(format!("its results are still on the claim: copy them to {}", args.folder.results.display()))
        }
        State::Waiting if job.is_some_and(|job| !job.element.is_handed_over) => {
            Some(format!("run sweepline status {plan} --advance{folder} to submit it once its dependencies have ended"))
        }
        State::Queued => job
            .filter(|job| job.state.as_ref().is_some_and(JobState::is_held))
            .map(|job| format!("the job is held and does not start by itself: scontrol release {}", job.element.job)),
        State::Done if exit_code == Some(3) => {
            Some(format!("some runs are invalid or given up: see sweepline list{folder}"))
        }
        _ => None,
    }
}

fn text(document: &Document) -> String {
    let mut table = grid(["element", "state", "runs", "job", "queue", "node"]);
    for element in &document.elements {
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        table.add_row([
            element.name.clone(),
            element.state.words().to_owned(),
            format!("{} of {}", element.done, element.all),
            or_empty(&element.job),
            or_empty(&element.queue),
            or_empty(&element.node),
        ]);
    }
    let mut out = lines(table);
    for element in &document.elements {
        let Some(next) = &element.next else { continue };
        let log = element.log.as_ref().filter(|_| element.state == State::Failed);
        let log = log.map(|log| format!(" (log: {})", log.display())).unwrap_or_default();
        out.push(format!("{}: {next}{log}", element.name));
    }
    out.join("\n")
}
