//! `sweepline export [PLAN]`: runs or requests as a table.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::analysis::lengths::{Bucket, buckets, measure_bucket};
use crate::analysis::turns::{measure_turn, turns};
use crate::analysis::{OfClass, PlanMetrics, RunMetrics};
use crate::export::parts::{self, Part, PartsOfRun, Turn};
use crate::export::runs::{self, BRIEF, RunRow};
use crate::export::runs_parquet::{self, StoredRun};
use crate::export::{Csv, Format, Json, Markdown, Sheet, requests};
use crate::plan::Plan;
use crate::rows::{Facts, Replay, RowsError, RunLabels, RunReader};
use crate::store::{Listed, RunRecord, State, Store, StoreError};

use super::answers::{self, Answered};
use super::changes::Changes;
use super::replace::{cannot_write, replace};
use super::workspace::Workspace;
use super::{Exit, Failure, Folder};

/// The arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Only this plan's runs, with its names, thresholds and prices; without it every run of the folder
    #[arg(value_name = "PLAN")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    /// How the table is written; parquet: one row per run with every metric that needs no plan
    #[arg(long, value_enum, default_value = "csv")]
    format: Written,
    /// One row per run, one per class of a mix, one per bucket of prompt and output tokens, one per turn of conversations, or
    /// one per request
    #[arg(long, value_enum, default_value = "runs")]
    rows: Rows,
    /// The file to write; without it the table goes to stdout (parquet: to runs.parquet in the results folder)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    folder: Folder,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Written {
    /// Comma-separated, one header line.
    Csv,
    /// A list of objects.
    Json,
    /// A table in Markdown.
    Markdown,
    /// Parquet.
    Parquet,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rows {
    /// A run.
    Runs,
    /// A class of a run over a mix.
    Classes,
    /// A bucket of prompt or output tokens of a run whose requests differ in length.
    Lengths,
    /// A turn of a run of conversations.
    Turns,
    /// A request.
    Requests,
}

/// A committed run under the names that it is exported with.
struct Chosen {
    sweep: Option<String>,
    record: RunRecord,
    labels: RunLabels,
}

/// Writes a table.
pub fn run(args: ExportArgs) -> Result<Exit, Failure> {
    args.changes.need(args.plan.as_deref())?;
    let store = Store::open(&args.folder.results);
    let workspace = args.plan.as_deref().map(|plan| Workspace::open(plan, &args.changes, &args.folder)).transpose()?;
    let plan = workspace.as_ref().map(Workspace::plan);
    let chosen = match &workspace {
        Some(workspace) => of_plan(workspace),
        None if !args.folder.results.exists() => {
            let folder = args.folder.results.display();
            return Err(Failure::Usage(format!("there is no results folder {folder}; --results DIR names another")));
        }
        None => of_folder(&store.list()?),
    };
    if args.format == Written::Parquet {
        return parquet(&args, &store, &chosen);
    }
    let format = format(&args);
    match args.rows {
        Rows::Runs | Rows::Classes => {
            let mut damaged = None;
            let of_run = |run| rows(&store, plan, run, args.rows == Rows::Classes);
            let read = chosen.iter().filter_map(|run| of_run(run).map_err(|e| damaged.get_or_insert(e)).ok());
            let rows: Vec<RunRow> = read.flatten().collect();
            let sheet = runs::sheet(&rows);
            let axes = runs::axes(rows.iter().map(|row| &row.labels));
            let sheet = if args.format == Written::Markdown { brief(sheet, &axes, &BRIEF) } else { sheet };
            let exit = write(args.output.as_deref(), format, sheet)?;
            damaged.map_or(Ok(exit), |error| Err(error.into()))
        }
        Rows::Lengths => write_parts(&args, &store, &chosen, by_length),
        Rows::Turns => write_parts(&args, &store, &chosen, by_turn),
        Rows::Requests => write_requests(&args, &store, &chosen, format),
    }
}

fn format(args: &ExportArgs) -> &'static dyn Format {
    match args.format {
        Written::Csv => &Csv,
        Written::Json => &Json,
        Written::Markdown | Written::Parquet => &Markdown,
    }
}

/// The columns that a person reads: the main ones, and whatever further axes tell the runs apart.
fn brief<'a>(sheet: Sheet<'a>, axes: &[String], main: &[&str]) -> Sheet<'a> {
    let names: Vec<String> = sheet.columns.iter().map(|column| column.name.clone()).collect();
    let is_axis = |name: &str| axes.iter().any(|axis| axis == name.strip_prefix("axis_").unwrap_or(name));
    let wanted: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| main.contains(name) || is_axis(name)).collect();
    sheet.select(&wanted)
}

fn of_plan(workspace: &Workspace) -> Vec<Chosen> {
    let named = |run: &crate::expand::PlannedRun| {
        let record = usable(workspace.disk.get(&run.id)?)?.clone();
        let names = &run.spec.labels;
        let (model, scenario) = (names.model.to_string(), names.scenario.to_string());
        let labels = RunLabels { model, scenario, axes: names.axes.to_map(), ..record.labels() };
        Some(Chosen { sweep: Some(run.sweep.to_string()), record, labels })
    };
    workspace.expansion.runs.iter().filter_map(named).collect()
}

fn of_folder(listed: &[Listed]) -> Vec<Chosen> {
    let records = listed.iter().filter_map(usable).cloned();
    records.map(|record| Chosen { sweep: None, labels: record.labels(), record }).collect()
}

/// The record of a run that can be exported. One that cannot is left out, and never silently.
fn usable(listed: &Listed) -> Option<&RunRecord> {
    if let State::Corrupt(reason) = &listed.state {
        eprintln!("run {} is left out: {reason} (`sweepline verify` names every damaged file)", listed.id);
        return None;
    }
    listed.record.as_ref()
}

/// The row of a run, or those of its classes.
fn rows(store: &Store, plan: Option<&Plan>, run: &Chosen, by_class: bool) -> Result<Vec<RunRow>, StoreError> {
    let mut answered = answers::read(store, &run.record, plan)?;
    answered.labels = run.labels.clone();
    let (plan, sweep) = (plan.map(|plan| plan.name.clone()), run.sweep.clone());
    Ok(match by_class {
        true => class_rows(plan, sweep, &run.record, &answered),
        false => vec![run_row(plan, sweep, &run.record, answered)],
    })
}

/// The rows of the classes of a run that has been read; the verdict is the run's.
pub fn class_rows(plan: Option<String>, sweep: Option<String>, record: &RunRecord, answered: &Answered) -> Vec<RunRow> {
    let row = |one: &OfClass| RunRow {
        plan: plan.clone(),
        sweep: sweep.clone(),
        labels: answered.labels.clone(),
        class: Some(one.class.clone()),
        started: record.started.to_string(),
        verdict: answered.verdict.clone(),
        metrics: one.metrics.clone(),
        plan_metrics: PlanMetrics::default(),
    };
    answered.classes.iter().map(row).collect()
}

/// The row of a run that has been read.
pub fn run_row(plan: Option<String>, sweep: Option<String>, record: &RunRecord, answered: Answered) -> RunRow {
    RunRow {
        plan,
        sweep,
        labels: answered.labels,
        class: None,
        started: record.started.to_string(),
        verdict: answered.verdict,
        metrics: answered.metrics,
        plan_metrics: answered.plan_metrics,
    }
}

/// How a run is measured in parts.
type Measured<P> = Result<Vec<(P, RunMetrics)>, RowsError>;

fn by_length(run: &RunReader, facts: &Facts) -> Measured<Bucket> {
    let buckets = buckets(run.rows(), facts).into_iter();
    buckets.map(|bucket| Ok((bucket, measure_bucket(run, bucket, facts)?))).collect()
}

fn by_turn(run: &RunReader, facts: &Facts) -> Measured<Turn> {
    turns(run.rows(), facts).into_iter().map(|turn| Ok((Turn(turn), measure_turn(run, turn, facts)?))).collect()
}

/// Writes the table of parts of runs, one run in memory at a time. A run that cannot be read ends the table with an error.
fn write_parts<P: Part>(
    args: &ExportArgs,
    store: &Store,
    chosen: &[Chosen],
    measure: fn(&RunReader, &Facts) -> Measured<P>,
) -> Result<Exit, Failure> {
    let axes = runs::axes(chosen.iter().map(|run| &run.labels));
    let failure = std::cell::RefCell::new(None);
    let measured = |run: &Chosen| -> Result<PartsOfRun<P>, StoreError> {
        let read = store.read(&run.record)?;
        Ok((run.labels.clone(), measure(&read, &run.record.facts)?))
    };
    let read = chosen.iter().map_while(|run| measured(run).map_err(|error| failure.replace(Some(error))).ok());
    let sheet = parts::sheet(&axes, read);
    let is_brief = args.format == Written::Markdown;
    let sheet = if is_brief { brief(sheet, &axes, &parts::BRIEF) } else { sheet };
    let exit = write(args.output.as_deref(), format(args), sheet)?;
    failure.into_inner().map_or(Ok(exit), |error| Err(error.into()))
}

/// Writes the table of requests, one run in memory at a time. A run that cannot be read ends the table with an error.
fn write_requests(args: &ExportArgs, store: &Store, chosen: &[Chosen], format: &dyn Format) -> Result<Exit, Failure> {
    let axes = runs::axes(chosen.iter().map(|run| &run.labels));
    let failure = std::cell::RefCell::new(None);
    let read = chosen.iter().map_while(|run| match store.read(&run.record) {
        Ok(read) => Some((run.labels.clone(), run.record.facts.clone(), read.into_rows())),
        Err(error) => {
            failure.replace(Some(error));
            None
        }
    });
    let exit = write(args.output.as_deref(), format, requests::sheet(&axes, read))?;
    failure.into_inner().map_or(Ok(exit), |error| Err(error.into()))
}

fn write(path: Option<&Path>, format: &dyn Format, sheet: Sheet<'_>) -> Result<Exit, Failure> {
    let written = match path {
        None => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            format.write(sheet, &mut out).and_then(|()| out.flush())
        }
        Some(path) => replace(path, |out| format.write(sheet, out)),
    };
    match (written, path) {
        (Err(error), None) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::Done),
        (Err(error), path) => Err(cannot_write(path, &error)),
        (Ok(()), _) => Ok(Exit::Done),
    }
}

fn parquet(args: &ExportArgs, store: &Store, chosen: &[Chosen]) -> Result<Exit, Failure> {
    let parts = match args.rows {
        Rows::Classes => Some("classes"),
        Rows::Lengths => Some("lengths"),
        Rows::Turns => Some("turns"),
        Rows::Runs | Rows::Requests => None,
    };
    if let Some(parts) = parts {
        return Err(Failure::Usage(format!("{parts} are written as csv, json or markdown")));
    }
    if args.rows == Rows::Requests {
        let files = args.folder.results.display();
        return Err(Failure::Usage(format!("requests are Parquet already: {files}/runs/*/requests.parquet")));
    }
    let mut seen = std::collections::HashSet::new();
    let mut stored = Vec::new();
    for run in chosen.iter().filter(|run| seen.insert(run.record.id.clone())) {
        let answered = answers::read(store, &run.record, None)?;
        let started = run.record.started.to_string();
        stored.push(StoredRun { labels: run.record.labels(), started, metrics: answered.metrics });
    }
    let bytes = runs_parquet::bytes(stored).map_err(|error| Failure::Unexpected(error.into()))?;
    let default = args.folder.results.join("runs.parquet");
    let path = args.output.as_deref().unwrap_or(&default);
    replace(path, |out| out.write_all(&bytes)).map_err(|error| match args.output {
        None => Failure::Store(StoreError::cannot_write(path, error)),
        Some(_) => cannot_write(Some(path), &error),
    })?;
    Ok(Exit::Done)
}
