//! `sweepline export [PLAN]`: runs or requests as a table.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::analysis::groups::{groups, measure_group};
use crate::export::runs::{self, BRIEF, RunRow};
use crate::export::runs_parquet::{self, StoredRun};
use crate::export::{Csv, Format, Json, Markdown, Sheet, groups as group_table, requests};
use crate::plan::Plan;
use crate::rows::{Replay, RunLabels};
use crate::store::{Listed, RunRecord, State, Store, StoreError};

use super::answers::{self, Answered};
use super::changes::Changes;
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
    /// One row per run, per group of a run's requests (class of a mix, length), or per request
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
    /// A group of a run's requests: a class of a mix, or a bucket of prompt or output tokens where lengths differ.
    Groups,
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
    let format: &dyn Format = match args.format {
        Written::Csv => &Csv,
        Written::Json => &Json,
        Written::Markdown | Written::Parquet => &Markdown,
    };
    match args.rows {
        Rows::Runs => {
            let mut damaged = None;
            let read =
                chosen.iter().filter_map(|run| row(&store, plan, run).map_err(|e| damaged.get_or_insert(e)).ok());
            let rows: Vec<RunRow> = read.collect();
            let sheet = runs::sheet(&rows);
            let axes = runs::axes(rows.iter().map(|row| &row.labels));
            let sheet = if args.format == Written::Markdown { brief(sheet, &axes, &BRIEF) } else { sheet };
            let exit = write(args.output.as_deref(), format, sheet)?;
            damaged.map_or(Ok(exit), |error| Err(error.into()))
        }
        Rows::Groups => write_groups(&args, &store, &chosen, format),
        Rows::Requests => write_requests(&args, &store, &chosen, format),
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

fn row(store: &Store, plan: Option<&Plan>, run: &Chosen) -> Result<RunRow, StoreError> {
    let mut answered = answers::read(store, &run.record, plan)?;
    answered.labels = run.labels.clone();
    Ok(run_row(plan.map(|plan| plan.name.clone()), run.sweep.clone(), &run.record, answered))
}

/// The row of a run that has been read.
pub fn run_row(plan: Option<String>, sweep: Option<String>, record: &RunRecord, answered: Answered) -> RunRow {
    RunRow {
        plan,
        sweep,
        labels: answered.labels,
        started: record.started.to_string(),
        verdict: answered.verdict,
        metrics: answered.metrics,
        plan_metrics: answered.plan_metrics,
    }
}

/// Writes the table of groups, one run in memory at a time. A run that cannot be read ends the table with an error.
fn write_groups(args: &ExportArgs, store: &Store, chosen: &[Chosen], format: &dyn Format) -> Result<Exit, Failure> {
    let axes = runs::axes(chosen.iter().map(|run| &run.labels));
    let failure = std::cell::RefCell::new(None);
    let measured = |run: &Chosen| -> Result<group_table::GroupsOfRun, StoreError> {
        let (read, facts) = (store.read(&run.record)?, &run.record.facts);
        let mut measured = Vec::new();
        for group in groups(read.rows(), facts) {
            let metrics = measure_group(&read, &group, facts)?;
            measured.push((group, metrics));
        }
        Ok((run.labels.clone(), measured))
    };
    let read = chosen.iter().map_while(|run| measured(run).map_err(|error| failure.replace(Some(error))).ok());
    let sheet = group_table::sheet(&axes, read);
    let is_brief = args.format == Written::Markdown;
    let sheet = if is_brief { brief(sheet, &axes, &group_table::BRIEF) } else { sheet };
    let exit = write(args.output.as_deref(), format, sheet)?;
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

fn cannot_write(path: Option<&Path>, error: &std::io::Error) -> Failure {
    let what = path.map_or_else(|| "the output".to_owned(), |path| path.display().to_string());
    let text = format!("cannot write {what}: {error}");
    match (path, error.kind()) {
        (Some(_), ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::IsADirectory)
        | (Some(_), ErrorKind::NotADirectory | ErrorKind::ReadOnlyFilesystem) => Failure::Usage(text),
        _ => Failure::Unexpected(anyhow::anyhow!(text)),
    }
}

/// Writes a file under another name beside it and puts it in its place when it is whole. What a link leads to is
/// replaced, not the link; what is no regular file, like a pipe, is written to.
fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path)?);
        fill(&mut out)?;
        return out.flush();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = File::create(&beside).and_then(|file| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()
    });
    let moved = written.and_then(|()| std::fs::rename(&beside, path));
    if moved.is_err() {
        // What was begun is of no use; that it cannot be removed is not worth a second error.
        let _ = std::fs::remove_file(&beside);
    }
    moved
}

fn parquet(args: &ExportArgs, store: &Store, chosen: &[Chosen]) -> Result<Exit, Failure> {
    if args.rows == Rows::Groups {
        let text = "groups are written as csv, json or markdown";
        return Err(Failure::Usage(text.to_owned()));
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
