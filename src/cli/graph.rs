//! `sweepline graph PLAN` shows the dependencies between runs, and their progress.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::changes::Changes;
use super::workspace::Workspace;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::Folder;
use crate::cli::output;
use crate::expand::{PlannedRun, Pool, RunId};
use crate::graph::drawing::drawing;
use crate::graph::drawn::{PoolState, PrunedLoad, RunState, States};
use crate::graph::{build, render};
use crate::report::{Trail, TrailStep, TrailTrial};
use crate::sweep::choose::Chosen;
use crate::sweep::resume::{Action, Wishes};

/// The arguments of `graph`.
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    #[command(flatten)]
    changes: Changes,
    /// Output format: Graphviz, Mermaid, lines of text or JSON
    #[arg(long, value_enum, default_value = "dot")]
    format: Picture,
    #[command(flatten)]
    folder: Folder,
}

/// The output format of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Picture {
    /// Graphviz.
    Dot,
    /// Mermaid.
    Mermaid,
    /// One line for each node, for a terminal.
    Text,
    /// Nodes and edges.
    Json,
}

/// Draws all runs of the plan, done or not, with the state of its searches and ladders.
pub(super) fn run(args: GraphArgs) -> Result<Exit, Failure> {
    let workspace = Workspace::open(&args.plan, &args.changes, &args.folder)?;
    let expansion = &workspace.expansion;
    let graph = build(expansion, &|_| true).map_err(|error| Failure::Usage(error.to_string()))?;
    let drawing = drawing(&graph, expansion, &states(&workspace));
    match args.format {
        Picture::Dot => output::print(&render::dot(&drawing))?,
        Picture::Mermaid => output::print(&render::mermaid(&drawing))?,
        Picture::Text => output::print_fitted(&render::text(&drawing))?,
        Picture::Json => output::json(&render::json(&drawing))?,
    }
    Ok(Exit::Done)
}

/// Returns the progress of the plan's runs, from the results folder.
fn states(workspace: &Workspace) -> States {
    let runs = workspace.expansion.runs.iter();
    let pools = workspace.expansion.pools.iter().zip(&workspace.chosen).zip(&workspace.trails);
    States {
        runs: runs.map(|run| run_state(workspace, run)).collect(),
        pools: pools.map(|((pool, chosen), trail)| pool_state(pool, chosen, trail)).collect(),
    }
}

fn run_state(workspace: &Workspace, run: &PlannedRun) -> RunState {
    let decision = workspace.decide(run, Wishes::default());
    match decision.action {
        Action::Pruned if workspace.expansion.why_left_out(run).is_some() => {
            RunState { state: "left_out", why: Some(decision.reason) }
        }
        Action::Pruned => RunState { state: "pruned", why: Some(decision.reason) },
        Action::GivenUp => RunState::of("given_up"),
        action if action.is_work() => RunState::of("pending"),
        _ => RunState::of("done"),
    }
}

fn pool_state(pool: &Pool, chosen: &Chosen, trail: &Trail) -> PoolState {
    let id = |at: usize| pool.members[at].run.id;
    let said = |id: RunId| {
        let full = id.to_string();
        let step = trail.steps.iter().find(|step| step.runs.contains(&full)).map(TrailStep::told);
        let trial = || trail.trials.iter().find(|trial| trial.run == full).map(TrailTrial::told);
        let next = || trail.next.as_ref().map(|next| next.words.clone());
        step.or_else(trial).or_else(next).unwrap_or_default()
    };
    let runs = chosen.members().into_iter().map(|at| (id(at), said(id(at)))).collect();
    let of_load = |load: &f64| PrunedLoad {
        label: format!("{}: {load} {}", trail.title(), trail.unit()),
        why: trail.why_left_out().unwrap_or_default(),
        runs: pool.members.iter().filter(|member| member.load == *load).count(),
    };
    PoolState {
        sweep: trail.sweep.clone(),
        kind: trail.chooses,
        title: trail.title(),
        state: trail.state,
        standing: trail.standing.clone(),
        found: trail.found,
        runs,
        pruned: trail.pruned.iter().map(of_load).collect(),
    }
}
