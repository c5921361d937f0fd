//! `sweepline preview PLAN` shows what `run` would do, why, and at what cost. Sends no requests, unless
//! `--probe` queries the servers.

pub(super) mod choices;
mod data;
pub(super) mod entries;
pub(super) mod environments;
mod hooks;
mod pending;
pub(super) mod reason;
pub(super) mod repeats;
mod scrapes;
mod starts;
pub(super) mod text;
mod token_commands;

use std::path::{Path, PathBuf};

use clap::Args;
use entries::{Preview, Seen};
use environments::pinned;

use super::changes::Changes;
use super::freeze::Frozen;
use super::redo::Again;
use super::selection::Selection;
use super::workspace::Workspace;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::{connection_limits, lints, output, preflight, probe, stderr};
use crate::expand::PlannedRun;
use crate::report::format::plain;
use crate::sweep::resume::Wishes;

pub(super) use pending::PendingCell;
pub(super) use reason::reason;

/// The arguments of `preview`.
#[derive(Debug, Args)]
pub struct PreviewArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    frozen: Frozen,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    again: Again,
    /// Show each run on its own line instead of grouping runs by reason
    #[arg(long)]
    all: bool,
    /// Query the servers too, like `probe`, and show which of them differ from the servers that were
    /// measured
    #[arg(long)]
    probe: bool,
    /// Exit with code 10 if there is work to do
    #[arg(long)]
    exit_code: bool,
    /// Maximum number of concurrent runs, for the time estimate; runs on one resource never overlap
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Text for people, or JSON for programs (schemas/preview.schema.json)
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
}

/// How a preview is shown.
pub(crate) struct View {
    /// The output format.
    pub format: TextOrJson,
    /// Whether each run has its own line.
    pub all: bool,
    /// The servers' reports; `None` if no server was queried.
    pub asked: Option<Vec<probe::ProbedEndpoint>>,
    /// Maximum number of concurrent runs.
    pub jobs: u16,
}

/// Shows what `run` would do.
pub(super) fn run(args: PreviewArgs) -> Result<Exit, Failure> {
    let workspace = Workspace::open(&args.plan, &args.changes, &args.folder)?;
    args.frozen.check(&workspace)?;
    let asked = args.probe.then(|| probe::ask_all(workspace.plan(), &workspace.expansion, &args.plan));
    let ready = asked.as_deref().map_or(Exit::Done, probe::exit);
    let view = View { format: args.format, all: args.all, asked, jobs: args.jobs };
    let work = show(&workspace, &args.selection, args.again.wishes(), view)?;
    if let Some(line) = lints::one_line(&workspace.loaded, &args.folder, (&args.plan, &args.changes)) {
        stderr::complain(&line);
    }
    Ok(match ready {
        Exit::Done if args.exit_code && work => Exit::Work,
        exit => exit,
    })
}

/// Prints the preview. Returns whether there is work: any run that has no result to keep, is needed, and is
/// not given up.
pub(super) fn show(workspace: &Workspace, selection: &Selection, wishes: Wishes, view: View) -> Result<bool, Failure> {
    let picked = selection.pick(workspace.plan(), &workspace.expansion)?;
    let (waiting, picked) = (picked.cells(&workspace.expansion.pending), picked.runs);
    let (format, all, jobs) = (view.format, view.all, view.jobs);
    let seen = Seen { picked: &picked, waiting: &waiting, wishes, whole: selection.is_everything() };
    let refused = pinned(workspace, &picked, view.asked.as_deref().unwrap_or_default());
    let mut preview = Preview::new(workspace, seen, view.asked, jobs);
    match format {
        TextOrJson::Json => output::json(&preview)?,
        TextOrJson::Text => {
            preview.in_order_of_plan(workspace);
            output::print_fitted(&text::text(&preview, all))?;
        }
    }
    let work = preview.runs.iter().filter(|entry| entry.state.is_work()).filter_map(|entry| entry.at);
    let todo: Vec<&PlannedRun> = work.map(|at| &workspace.expansion.runs[at]).collect();
    let folder = workspace.loaded.file().parent().unwrap_or(Path::new(""));
    for lacking in preflight::lacking(workspace, folder, todo.iter().copied()) {
        stderr::complain(&format!("on this machine, `run` would refuse this: {lacking}"));
    }
    for obstacle in connection_limits::obstacles(workspace, todo.into_iter(), jobs) {
        stderr::complain(&format!("`run` would refuse this: {obstacle}"));
    }
    if let Err(Failure::Usage(reason)) = workspace.budget_allows_a_run() {
        stderr::complain(&format!("`run` would refuse this: {}", plain(&reason)));
    }
    for reason in refused {
        stderr::complain(&format!("`run` would refuse this: {}", plain(&reason)));
    }
    Ok(preview.has_work())
}
