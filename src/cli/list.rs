//! `sweepline list`: all runs of a results folder, and the attempts that became none.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::expand::RunSpec;

use crate::report::grid::{grid, lines};
use crate::store::{AttemptState, Listed, Moment, State, Store};
use crate::sweep::event::load_name;

use super::schema::text_of;
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

/// What a results folder holds.
#[derive(Debug, Serialize, JsonSchema)]
struct Document<'a> {
    /// Committed runs.
    runs: Vec<OneRun<'a>>,
    /// Attempts that became no run; empty without --attempts.
    attempts: Vec<Attempt<'a>>,
}

/// A committed run.
#[derive(Debug, Serialize, JsonSchema)]
struct OneRun<'a> {
    /// Its full id; the name of its folder, which is the beginning of the id, where its run.json cannot be read.
    id: &'a str,
    /// whole, or `corrupt: ` with what is wrong.
    state: String,
    /// What its run.json says; absent where that cannot be read.
    #[serde(flatten)]
    record: Option<Recorded<'a>>,
}

/// What a run.json says of its run.
#[derive(Debug, Serialize, JsonSchema)]
struct Recorded<'a> {
    /// Which attempt at it this is, from 1.
    attempt: u32,
    /// When it began, in UTC.
    #[schemars(with = "String", extend("format" = "date-time"))]
    started: Moment,
    /// When it was over, in UTC.
    #[schemars(with = "String", extend("format" = "date-time"))]
    ended: Moment,
    /// The whole specification, with every default.
    #[schemars(with = "Map<String, Value>")]
    spec: &'a RunSpec,
}

/// An attempt that became no run.
#[derive(Debug, Serialize, JsonSchema)]
struct Attempt<'a> {
    /// The beginning of the run's id and the attempt's number: id.number.
    attempt: &'a str,
    /// Why it failed, or that it was not finished.
    reason: &'a str,
}

/// The schema, as text.
pub fn schema_text() -> String {
    text_of::<Document>("sweepline list --format json")
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
            let attempts = failed.iter().map(|(attempt, reason)| Attempt { attempt, reason }).collect();
            output::json(&Document { runs: runs.iter().map(OneRun::of).collect(), attempts })?;
        }
        TextOrJson::Text => output::print(&text(&args, &runs, &failed))?,
    }
    Ok(Exit::Done)
}

impl<'a> OneRun<'a> {
    fn of(run: &'a Listed) -> OneRun<'a> {
        let record = run.record.as_ref();
        OneRun {
            id: record.map_or(&run.id, |record| &record.id),
            state: said(&run.state),
            record: record.map(|record| Recorded {
                attempt: record.attempt,
                started: record.started,
                ended: record.ended,
                spec: &record.spec,
            }),
        }
    }
}

fn said(state: &State) -> String {
    match state {
        State::Whole => "whole".to_owned(),
        State::Corrupt(reason) => format!("corrupt: {reason}"),
    }
}

fn text(args: &ListArgs, runs: &[Listed], failed: &[(String, String)]) -> String {
    if runs.is_empty() && failed.is_empty() {
        return format!("no runs in {}", args.folder.results.display());
    }
    let mut table = grid(["run", "endpoint", "model", "scenario", "load", "connections", "repeat", "ended", "state"]);
    for run in runs {
        let (id, state) = (run.id.clone(), said(&run.state));
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
