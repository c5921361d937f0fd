//! `sweepline status PLAN`: what the queue and the results folder say of a plan, together.

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
    /// Kubernetes: hand over the jobs whose turn has come, for all that they wait for has ended
    #[arg(long)]
    advance: bool,
    #[command(flatten)]
    folder: Folder,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
}

/// How a plan stands on its cluster.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The plan's name.
    plan: String,
    /// Its elements, each before those that wait for it.
    elements: Vec<OneElement>,
}

/// How an element stands.
#[derive(Debug, Serialize, JsonSchema)]
struct OneElement {
    /// Its name: the part, and the sweeps where the part has several elements.
    name: String,
    /// How it stands.
    state: State,
    /// How many of its runs need nothing more.
    done: usize,
    /// How many runs it has; those that wait for an earlier sweep count as that sweep's answer is assumed to make them.
    all: usize,
    /// Its job: the one that waits or runs, else the last; null where none was submitted.
    job: Option<String>,
    /// The job in its cluster's words; null where that does not remember it.
    queue: Option<String>,
    /// The node that it runs on; null while it does not.
    node: Option<String>,
    /// The exit code of the last try; null where none has ended.
    exit_code: Option<u8>,
    /// The file of its output.
    log: Option<PathBuf>,
    /// What to do now; null where nothing is to be done.
    next: Option<String>,
}

/// How an element stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    /// Nothing is to do.
    Done,
    /// A job makes its runs now.
    Running,
    /// A job waits for resources, or for its turn.
    Queued,
    /// A job waits for another one.
    Waiting,
    /// Its job has ended well, and its results are not in this folder.
    Ended,
    /// Its job was cancelled before all was done.
    Cancelled,
    /// Its job has ended, and not all is done.
    Failed,
    /// There is something to do, and no job for it.
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

/// Says how a plan stands.
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

/// What the queue says: the state, and why a job waits.
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
            Some(2) => format!("see the log for what is wrong, mend it, then {again}"),
            Some(4) => format!("a gate said no: see the log, or sweepline report {plan}{folder}"),
            Some(5) => format!("see the log and sweepline verify{folder}, then {again}"),
            _ => format!("see the log, then {again}: it goes on where it stopped"),
        }),
        State::NotSubmitted | State::Cancelled => Some(again),
        State::Ended => {
            Some(format!("its results lie on the claim: bring them into {}", args.folder.results.display()))
        }
        State::Waiting if job.is_some_and(|job| !job.element.is_handed_over) => {
            Some(format!("sweepline status {plan} --advance{folder} hands it over once its turn has come"))
        }
        State::Done if exit_code == Some(3) => {
            Some(format!("some results are invalid or given up: sweepline list{folder}"))
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
