//! `sweepline list` lists all runs of a results folder, and attempts that did not become runs.

use std::cell::RefCell;

use clap::Args;
use schemars::JsonSchema;
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::attempts::Tried;
use super::workspace::warn_of_no_inventory;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::output;
use crate::expand::RunSpec;
use crate::report::format::plain;
use crate::report::grid;
use crate::report::has_screen;
use crate::store::{AttemptRecord, AttemptState, Deleted, Entry, Listed, Moment, State, Store, Tries, short};
use crate::sweep::event::{load_name, name};
use crate::sweep::resume::tries_words;

/// The arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Also show attempts that did not become runs
    #[arg(long)]
    attempts: bool,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
}

/// The contents of a results folder.
#[derive(Serialize, JsonSchema)]
pub(super) struct Document<'a> {
    /// Committed runs.
    #[schemars(with = "Vec<OneRun<'a>>")]
    runs: Runs<'a>,
    /// Attempts that did not become runs; empty without --attempts.
    attempts: Vec<Attempt>,
    /// Runs that were committed and whose folders are gone.
    deleted: Vec<Gone<'a>>,
    /// Runs with uncommitted attempts: the attempts since the last commit of the run or, if the run was never
    /// committed, all of its attempts.
    tried: Vec<TriedRun>,
}

/// A committed run.
#[derive(Debug, Serialize, JsonSchema)]
struct OneRun<'a> {
    /// The full id of the run; if its run.json cannot be read, the name of its folder, which is the beginning
    /// of the id.
    id: &'a str,
    /// The state of the run: whole, or `corrupt: ` or `unreadable: ` followed by the problem.
    state: String,
    /// The contents of the run's run.json; absent if it cannot be read.
    #[serde(flatten)]
    record: Option<Recorded<'a>>,
}

/// The contents of a run.json.
#[derive(Debug, Serialize, JsonSchema)]
struct Recorded<'a> {
    /// The number of the attempt, from 1.
    attempt: u32,
    /// When the attempt began, in UTC.
    started: Moment,
    /// When the attempt ended, in UTC.
    ended: Moment,
    /// The complete specification of the run, with every default.
    #[schemars(with = "Map<String, Value>")]
    spec: &'a RunSpec,
}

/// A run that was committed and whose folder is gone. If its entry in the inventory is damaged, `attempt`,
/// `ended` and `name` are null.
#[derive(Debug, Serialize, JsonSchema)]
struct Gone<'a> {
    /// The full id of the run; only the beginning if its entry is damaged.
    id: &'a str,
    /// The attempt that was committed.
    attempt: Option<u32>,
    /// When the run ended, in UTC.
    ended: Option<Moment>,
    /// The name of the run: endpoint, model, scenario, load, repeat.
    name: Option<String>,
    /// The state of the run, as text.
    state: String,
}

/// A run with uncommitted attempts: those since its last commit or, if the run was never committed, all of
/// them.
#[derive(Debug, Serialize, JsonSchema)]
struct TriedRun {
    /// The full id of the run; only the beginning if the attempt.json of its last attempt cannot be
    /// read.
    id: String,
    /// The name of the run; null if the attempt.json of its last attempt cannot be read.
    name: Option<String>,
    /// Whether the run has an earlier result.
    committed: bool,
    /// The outcome of the attempts, as text: `interrupted 14:43`, `failed: connection refused`, `given up:
    /// 429 (3 of 3)`.
    state: String,
    /// The outcome of the attempts, in machine-readable form.
    tries: Tried,
}

/// An attempt that did not become a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Attempt {
    /// The beginning of the run's id and the attempt's number: id.number.
    attempt: String,
    /// Why the attempt failed, or that it was not finished.
    reason: String,
}

/// Committed runs, which are read while they are written out, because the specs of all runs may not
/// fit in memory.
struct Runs<'a>(RefCell<Box<dyn Iterator<Item = Listed> + 'a>>);

impl Serialize for Runs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut runs = self.0.borrow_mut();
        let mut written = serializer.serialize_seq(None)?;
        runs.try_for_each(|run| written.serialize_element(&OneRun::of(&run)))?;
        written.end()
    }
}

/// Lists the results folder.
pub(super) fn run(args: ListArgs) -> Result<Exit, Failure> {
    args.folder.must_exist()?;
    let store = args.folder.whole_store()?;
    warn_of_no_inventory(&store);
    let deleted = store.deleted()?;
    let tried = tried(&store)?;
    let attempts = if args.attempts { store.attempts()? } else { Vec::new() };
    let attempts: Vec<Attempt> = attempts
        .into_iter()
        .map(|attempt| {
            let reason = match attempt.state {
                AttemptState::Failed(reason) => reason,
                AttemptState::Unfinished => "not finished".to_owned(),
            };
            Attempt { attempt: format!("{}.{}", attempt.id, attempt.number), reason }
        })
        .collect();
    match args.format {
        TextOrJson::Json => {
            let deleted = deleted.iter().map(Gone::of).collect();
            let runs = Runs(RefCell::new(Box::new(store.stream()?)));
            output::json(&Document { runs, attempts, deleted, tried })?;
        }
        TextOrJson::Text => {
            // If there is no terminal, the output is meant for programs, and each run is on one line.
            let fits = has_screen();
            let rows = store.survey(&|run| Some(row(&run)))?;
            output::print_fitted(&text(&args, &rows, (&attempts, &deleted, &tried), fits))?;
        }
    }
    Ok(Exit::Done)
}

/// Returns the runs with uncommitted attempts, sorted by id.
fn tried(store: &Store) -> Result<Vec<TriedRun>, Failure> {
    let one = |(id, tries): (&String, &Tries)| {
        let last = tries.last.as_ref()?;
        let record = AttemptRecord::read(&store.layout().attempt(id, last.number)).ok();
        // A record with the id of another run does not belong to this one.
        let record = record.filter(|record| short(&record.id) == id);
        Some(TriedRun {
            id: record.as_ref().map_or_else(|| id.clone(), |record| record.id.clone()),
            name: record.map(|record| name(&record.spec)),
            committed: store.run(id).is_ok_and(|run| run.is_some()),
            state: tries_words(tries),
            tries: Tried::of(tries)?,
        })
    };
    let mut found: Vec<TriedRun> = store.tries()?.iter().filter_map(one).collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
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

impl<'a> Gone<'a> {
    fn of(deleted: &'a Deleted) -> Gone<'a> {
        let entry = deleted.entry.as_ref().ok();
        Gone {
            id: entry.map_or(&deleted.id, |entry| &entry.id),
            attempt: entry.map(|entry| entry.attempt),
            ended: entry.map(|entry| entry.ended),
            name: entry.map(Entry::name),
            state: deleted.said(),
        }
    }
}

fn said(state: &State) -> String {
    match state {
        State::Unreadable(reason) => format!("unreadable: {reason}"),
        State::Whole => "whole".to_owned(),
        State::Corrupt(reason) => format!("corrupt: {reason}"),
    }
}

/// Returns the output as text; `fits` limits the table to the width of the terminal.
fn text(
    args: &ListArgs,
    runs: &[[String; 9]],
    (failed, deleted, tried): (&[Attempt], &[Deleted], &[TriedRun]),
    fits: bool,
) -> String {
    if runs.is_empty() && failed.is_empty() && deleted.is_empty() && tried.is_empty() {
        return format!("no runs in {}", args.folder.results.display());
    }
    // A header without rows would be useless.
    let mut lines = if runs.is_empty() { Vec::new() } else { table(runs, fits) };
    lines.extend(deleted.iter().map(|deleted| {
        let name = deleted.entry.as_ref().map(|entry| format!(" {}", plain(&entry.name()))).unwrap_or_default();
        format!("deleted {}{name}: {}", deleted.id, plain(&deleted.said()))
    }));
    lines.extend(tried.iter().map(|run| {
        let name = run.name.as_ref().map(|name| format!(" {}", plain(name))).unwrap_or_default();
        let result = if run.committed { "; its result stays" } else { "" };
        format!("tried {}{name}: {}{result}", short(&run.id), plain(&run.state))
    }));
    lines.extend(failed.iter().map(|Attempt { attempt, reason }| format!("attempt {attempt}: {}", plain(reason))));
    lines.join("\n")
}

/// Returns the table cells of a run.
fn row(run: &Listed) -> [String; 9] {
    let (id, state) = (run.id.clone(), said(&run.state));
    match &run.record {
        None => {
            let mut cells: [String; 9] = Default::default();
            (cells[0], cells[8]) = (id, plain(&state));
            cells
        }
        Some(record) => {
            let spec = &record.spec;
            // A run that measures a server start has no load.
            let (what, load, connections) = match spec.start {
                true => ("start", String::new(), ""),
                false => (&*spec.labels.scenario, load_name(&spec.load), spec.connections.name()),
            };
            [
                id,
                plain(&spec.endpoint.name),
                plain(&spec.labels.model),
                with_axes(what, spec),
                load,
                connections.to_owned(),
                spec.repeat.to_string(),
                format!("{:.19}Z", record.ended.to_string()),
                plain(&state),
            ]
        }
    }
}

/// Returns what a run measures, followed by its values on axes that have no column: `chat
/// server.max_num_seqs=64`.
fn with_axes(what: &str, spec: &RunSpec) -> String {
    let axes = spec.labels.axes.iter().map(|(axis, value)| format!(" {}={}", plain(axis), plain(value)));
    std::iter::once(plain(what)).chain(axes).collect()
}

/// Returns the lines of the table. If the table must fit the terminal, long names are wrapped.
fn table(rows: &[[String; 9]], fits: bool) -> Vec<String> {
    const HEADER: [&str; 9] =
        ["run", "endpoint", "model", "scenario", "load", "connections", "repeat", "ended", "state"];
    if !fits {
        return grid::long(HEADER, rows).lines().map(str::to_owned).collect();
    }
    // Names and states are wrapped; of the other columns, the end time and the connection mode are the
    // least important.
    let text = grid::text_of_fewer(&["connections", "ended"], (2, &[1, 2, 3, 4, 5, 6, 7, 8]), |left_out| {
        let places = grid::places(HEADER, left_out);
        let mut table = grid::table();
        table.set_header(places.iter().map(|at| HEADER[*at]));
        table.add_rows(rows.iter().map(|row| places.iter().map(|at| row[*at].clone()).collect::<Vec<_>>()));
        table
    });
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> [String; 9] {
        let cells =
            ["0ac56fc9ffa212c5", name, name, name, "20 qps (at most 8 in flight)", "per_request", "12", "", "whole"];
        let mut row = cells.map(str::to_owned);
        row[7] = "2026-11-22T10:42:24Z".to_owned();
        row
    }

    #[test]
    fn a_table_for_a_terminal_is_no_wider_than_others() {
        let rows = [of("short"), of(&"a-very-long-name-".repeat(8))];
        let fitting = table(&rows, true);
        assert!(fitting.iter().all(|line| line.chars().count() <= 100), "{fitting:#?}");
        assert!(fitting.iter().filter(|line| line.contains("0ac56fc9ffa212c5")).count() == 2, "{fitting:#?}");
        // When writing to a pipe, each run is on one line.
        assert_eq!(table(&rows, false).len(), 3);
    }
}
