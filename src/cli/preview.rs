//! `sweepline preview PLAN`: what `run` would do and why. Sends nothing unless told to ask the servers.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::expand::PlannedRun;
use crate::plan::Scalar;
use crate::report::grid::{grid, lines};
use crate::report::progress::duration;
use crate::sweep::event::RunView;
use crate::sweep::resume::{Action, Decision, Wishes, explain};

use super::selection::Selection;
use super::workspace::Workspace;
use super::{Exit, Failure, Folder, TextOrJson, output, probe, room, why};

/// The arguments of `preview`.
#[derive(Debug, Args)]
pub struct PreviewArgs {
    /// The plan, YAML or TOML
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Ask the servers too, like `probe`
    #[arg(long)]
    probe: bool,
    /// Exit with 10 where there is work to do
    #[arg(long)]
    exit_code: bool,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
}

/// One entry of the preview.
#[derive(Debug, Serialize)]
struct Entry {
    id: String,
    sweep: String,
    cell: Map<String, Value>,
    repeat: u32,
    state: Action,
    reason: String,
}

/// How a preview is shown.
pub struct View<'a> {
    /// For people or programs.
    pub format: TextOrJson,
    /// What the servers said, if they were asked.
    pub asked: Option<&'a [probe::Asked]>,
    /// Most runs at once.
    pub jobs: u16,
}

/// Shows what `run` would do.
pub fn run(args: PreviewArgs) -> Result<Exit, Failure> {
    let workspace = Workspace::open(&args.plan, &args.folder)?;
    let asked = args.probe.then(|| probe::ask_all(workspace.plan(), &workspace.expansion, &args.plan));
    let view = View { format: args.format, asked: asked.as_deref(), jobs: 1 };
    let work = show(&workspace, &args.selection, Wishes::default(), view)?;
    Ok(match asked {
        Some(asked) if !probe::are_ready(&asked) => Exit::Runs,
        _ if args.exit_code && work => Exit::Work,
        _ => Exit::Done,
    })
}

/// Prints the preview. Says whether there is work to do.
pub fn show(workspace: &Workspace, selection: &Selection, wishes: Wishes, view: View) -> Result<bool, Failure> {
    let runs = &workspace.expansion.runs;
    let picked = selection.pick(workspace.plan(), runs)?;
    let chosen: Vec<&PlannedRun> = runs.iter().zip(picked).filter(|(_, picked)| *picked).map(|(run, _)| run).collect();
    let decisions: Vec<Decision> = chosen
        .iter()
        .map(|run| {
            let mut decision = workspace.decide(run, wishes);
            explain(&mut decision, run, &workspace.disk, chosen.len());
            if !decision.changed.is_empty() {
                decision.reason = why::changed(workspace, run, &decision.changed);
            }
            decision
        })
        .collect();
    let orphans = workspace.disk.orphans();
    let mut entries: Vec<Entry> = chosen.iter().zip(&decisions).map(|(run, decision)| entry(run, decision)).collect();
    entries.extend(orphans.iter().map(|orphan| Entry {
        id: orphan.record.as_ref().map_or_else(|| orphan.id.clone(), |record| record.id.clone()),
        sweep: String::new(),
        cell: Map::new(),
        repeat: 0,
        state: Action::Orphan,
        reason: "committed, but no run of this plan asks for it".to_owned(),
    }));
    match view.format {
        TextOrJson::Json => {
            let mut preview = json!({ "plan": workspace.plan().name, "runs": entries });
            if let Some(asked) = view.asked {
                preview["endpoints"] = json!(asked);
            }
            output::json(&preview)?;
        }
        TextOrJson::Text => {
            output::print(&text(workspace, &chosen, &decisions, orphans.len()))?;
            view.asked.map_or(Ok(()), probe::print)?;
        }
    }
    let todo = chosen.iter().zip(&decisions).filter(|(_, decision)| decision.action.is_work());
    for obstacle in room::obstacles(workspace, todo.map(|(run, _)| *run), view.jobs) {
        output::complain(&format!("`run` would refuse this: {obstacle}"));
    }
    Ok(decisions.iter().any(|decision| decision.action.is_work()))
}

fn entry(run: &PlannedRun, decision: &Decision) -> Entry {
    let value = |scalar: &Scalar| serde_json::to_value(scalar).unwrap_or(Value::Null);
    Entry {
        id: run.id.to_string(),
        sweep: run.sweep.to_string(),
        cell: run.cell.iter().map(|(axis, scalar)| (axis.to_owned(), value(scalar))).collect(),
        repeat: run.repeat,
        state: decision.action,
        reason: decision.reason.clone(),
    }
}

fn text(workspace: &Workspace, runs: &[&PlannedRun], decisions: &[Decision], orphans: usize) -> String {
    let mut table = grid(["state", "run", "sweep", "what", "reason"]);
    for (run, decision) in runs.iter().zip(decisions) {
        let view = RunView::new(0, run);
        table.add_row([decision.action.name(), &run.id.short()[..8], &view.sweep, &view.name, &decision.reason]);
    }
    let count = |action| decisions.iter().filter(|decision| decision.action == action).count();
    let mut seen = std::collections::HashSet::new();
    let time: u64 = runs
        .iter()
        .zip(decisions)
        .filter(|(run, decision)| decision.action.is_work() && seen.insert(run.id))
        .map(|(run, _)| RunView::new(0, run).expected_ns())
        .sum();
    format!(
        "{}\n\n{}: {} new, {} to redo, {} cached, {orphans} orphans; about {} one after another",
        lines(table).join("\n"),
        workspace.plan().name,
        count(Action::New),
        count(Action::Redo),
        count(Action::Cached),
        duration(time / 1_000_000_000),
    )
}
