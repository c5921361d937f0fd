//! `sweepline why RUN`: one decision, with all that led to it.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::expand::{Difference, PlannedRun, canonical, origin};
use crate::sweep::event::RunView;
use crate::sweep::resume::{Wishes, explain};

use super::workspace::Workspace;
use super::{Exit, Failure, Folder, TextOrJson, output};

/// The arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// A run: any unambiguous beginning of its id (`preview` and `list` show ids)
    #[arg(value_name = "RUN")]
    run: String,
    /// The plan that the run belongs to
    #[arg(long, value_name = "PLAN")]
    plan: PathBuf,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
}

/// Says why a run is done, skipped or done again.
pub fn run(args: WhyArgs) -> Result<Exit, Failure> {
    let workspace = Workspace::open(&args.plan, &args.folder)?;
    let Some(run) = find(&workspace, &args.run)? else {
        let orphan = workspace.store.find(&args.run)?;
        let reason = format!("{} is committed, but no run of {} asks for it", orphan.id, args.plan.display());
        match args.format {
            TextOrJson::Text => output::print(&format!("orphan: {reason}"))?,
            TextOrJson::Json => output::json(&json!({ "id": orphan.id, "state": "orphan", "reason": reason }))?,
        }
        return Ok(Exit::Done);
    };
    let mut decision = workspace.decide(run, Wishes::default());
    explain(&mut decision, run, &workspace.disk, 1);
    if !decision.changed.is_empty() {
        decision.reason = changed(&workspace, run, &decision.changed);
    }
    let attempts = failed_attempts(&workspace, run)?;
    match args.format {
        TextOrJson::Text => {
            let name = RunView::new(0, run).name;
            output::print(&format!("{} {name}\n{}: {}", run.id.short(), decision.action.name(), decision.reason))?;
            attempts.iter().try_for_each(|attempt| output::print(attempt))?;
            output::print("identity:")?;
            for (field, value) in canonical(&run.spec).entries() {
                output::print(&format!("  {field} = {value}"))?;
            }
        }
        TextOrJson::Json => {
            let identity: serde_json::Map<String, serde_json::Value> = canonical(&run.spec)
                .entries()
                .iter()
                .map(|(field, value)| (field.clone(), value.to_string().into()))
                .collect();
            let changes: Vec<_> = decision
                .changed
                .iter()
                .map(|d| json!({ "field": d.field, "old": d.old, "new": d.new, "place": place(&workspace, run, &d.field) }))
                .collect();
            output::json(&json!({
                "id": run.id.to_string(), "state": decision.action, "reason": decision.reason, "changed": changes,
                "attempts": attempts, "identity": identity,
            }))?;
        }
    }
    Ok(Exit::Done)
}

/// The plan's run whose id begins with `prefix`.
fn find<'a>(workspace: &'a Workspace, prefix: &str) -> Result<Option<&'a PlannedRun>, Failure> {
    let wanted = prefix.to_ascii_lowercase();
    let mut found: Vec<&PlannedRun> =
        workspace.expansion.runs.iter().filter(|run| run.id.to_string().starts_with(&wanted)).collect();
    found.dedup_by_key(|run| run.id);
    let first = found.first().map(|run| run.id);
    if found.iter().any(|run| Some(run.id) != first) {
        let ids: Vec<String> = found.iter().map(|run| run.id.short()).collect();
        return Err(Failure::Usage(format!("`{prefix}` begins several runs: {}; write more of it", ids.join(", "))));
    }
    Ok(found.first().copied())
}

fn failed_attempts(workspace: &Workspace, run: &PlannedRun) -> Result<Vec<String>, Failure> {
    use crate::store::AttemptState;
    let attempts = workspace.store.attempts()?.into_iter().filter(|attempt| attempt.id == run.id.short());
    Ok(attempts
        .map(|attempt| match attempt.state {
            AttemptState::Failed(reason) => format!("attempt {} failed: {reason}", attempt.number),
            AttemptState::Unfinished => format!("attempt {} was not finished", attempt.number),
        })
        .collect())
}

/// Where the plan gives `field` of `run` its value.
fn place(workspace: &Workspace, run: &PlannedRun, field: &str) -> Option<String> {
    let path = origin(workspace.plan(), run, field);
    workspace.loaded.place(&path).map(|place| place.to_string())
}

/// `changed: load.qps: 5 → 6 (plans/x.yaml:12:7), …`
pub fn changed(workspace: &Workspace, run: &PlannedRun, differences: &[Difference]) -> String {
    let one = |difference: &Difference| match place(workspace, run, &difference.field) {
        Some(place) => format!("{difference} ({place})"),
        None => difference.to_string(),
    };
    let all: Vec<String> = differences.iter().map(one).collect();
    format!("changed against the nearest result: {}", all.join(", "))
}
