//! `sweepline list`: all runs of a results folder, and the attempts that became none.

use clap::Args;
use serde_json::json;

use crate::report::grid::{grid, lines};
use crate::store::{AttemptState, Listed, State, Store};
use crate::sweep::event::load_name;

use super::{Exit, Failure, Folder, TextOrJson, output};

/// The arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Show attempts that became no run, too
    #[arg(long)]
    attempts: bool,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
}

/// Lists the results folder.
pub fn run(args: ListArgs) -> Result<Exit, Failure> {
    let store = Store::open(&args.folder.results);
    let runs = store.list()?;
    let attempts = if args.attempts { store.attempts()? } else { Vec::new() };
    let failed: Vec<(String, String)> = attempts
        .into_iter()
        .map(|attempt| {
            let reason = match attempt.state {
                AttemptState::Failed(reason) => reason,
                AttemptState::Unfinished => "not finished".to_owned(),
            };
            (format!("{}.{}", attempt.id, attempt.number), reason)
        })
        .collect();
    match args.format {
        TextOrJson::Json => {
            let runs: Vec<_> = runs.iter().map(as_json).collect();
            let failed: Vec<_> =
                failed.iter().map(|(name, reason)| json!({ "attempt": name, "reason": reason })).collect();
            output::json(&json!({ "runs": runs, "attempts": failed }))?;
        }
        TextOrJson::Text => output::print(&text(&args, &runs, &failed))?,
    }
    Ok(Exit::Done)
}

fn as_json(run: &Listed) -> serde_json::Value {
    let state = match &run.state {
        State::Whole => "whole".to_owned(),
        State::Corrupt(reason) => format!("corrupt: {reason}"),
    };
    match &run.record {
        None => json!({ "id": run.id, "state": state }),
        Some(record) => json!({
            "id": record.id, "state": state, "attempt": record.attempt, "started": record.started,
            "ended": record.ended, "spec": record.spec,
        }),
    }
}

fn text(args: &ListArgs, runs: &[Listed], failed: &[(String, String)]) -> String {
    if runs.is_empty() && failed.is_empty() {
        return format!("no runs in {}", args.folder.results.display());
    }
    let mut table = grid(["run", "endpoint", "model", "scenario", "load", "connections", "repeat", "ended", "state"]);
    for run in runs {
        let state = match &run.state {
            State::Whole => "whole".to_owned(),
            State::Corrupt(reason) => format!("corrupt: {reason}"),
        };
        let id = run.id.clone();
        table.add_row(match &run.record {
            None => {
                let mut cells: [String; 9] = Default::default();
                (cells[0], cells[8]) = (id, state);
                cells
            }
            Some(record) => [
                id,
                record.spec.endpoint.name.clone(),
                record.spec.labels.model.to_string(),
                record.spec.labels.scenario.to_string(),
                load_name(&record.spec.load),
                record.spec.connections.name().to_owned(),
                record.spec.repeat.to_string(),
                format!("{:.19}Z", record.ended.to_string()),
                state,
            ],
        });
    }
    // A header with nothing below it says nothing.
    let mut lines = if runs.is_empty() { Vec::new() } else { lines(table) };
    lines.extend(failed.iter().map(|(name, reason)| format!("attempt {name}: {reason}")));
    lines.join("\n")
}
