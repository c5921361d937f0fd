//! `sweepline export [PLAN]` writes runs, their parts, or their requests as tables.

#[cfg(test)]
pub(super) mod extremes;
pub(super) mod kind;
pub(super) mod question;
pub(super) mod source;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::{Args, ValueEnum};
use source::Source;

use super::changes::Changes;
use super::replace::{Overwrite, cannot_write, replace};
use super::selection::Selection;
use super::variant;
use super::workspace::{Workspace, warn_of_no_inventory};
use crate::analysis::ANALYSIS;
use crate::cli::export::kind::Rows;
use crate::cli::export::question::{Chosen, Columns};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::Folder;
use crate::cli::{output, stderr};
use crate::expand::PlannedRun;
use crate::export::charts::Charts;
use crate::export::{
    COLUMNS_VERSION, Column, Csv, Format, Json, Markdown, Parquet, Sheet, TooLong, Workbook, is_export, most_rows,
    runs_parquet,
};
use crate::store::StoreError;
use crate::units::text::quoted;

/// The arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Export only this plan's runs, with its names, thresholds and prices; by default all runs of the
    /// results folder are exported
    #[arg(value_name = "PLAN")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    selection: Selection,
    /// The output format; by default the extension of the --output file determines it, and output without
    /// an extension is CSV
    #[arg(long, value_enum)]
    format: Option<Written>,
    /// The kind of rows to write; an XLSX workbook may contain several kinds, and contains all applicable
    /// kinds by default
    #[arg(long, value_enum, value_delimiter = ',')]
    rows: Vec<Rows>,
    /// The columns to write, in this order, like `endpoint,ttft_*_ms`; `*` matches any characters, and
    /// `all` selects all columns. By default, CSV, XLSX and Markdown have about thirty columns plus the
    /// columns that distinguish the runs; JSON and Parquet have all columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Write a pivot table for spreadsheets: one row for each metric of a cell and repeat, and one column
    /// for each load
    #[arg(long)]
    wide: bool,
    /// The file to write; by default the table goes to stdout, except that runs in Parquet go to
    /// runs.parquet in the results folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    folder: Folder,
}

/// The output format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
enum Written {
    /// Comma-separated values with one header line.
    Csv,
    /// A workbook with a sheet for each kind of row, and a sheet with the definitions of all columns.
    Xlsx,
    /// A list of objects.
    Json,
    /// A table in Markdown.
    #[strum(serialize = "Markdown")]
    Markdown,
    /// A Parquet file with its rows sorted by run. A file of runs contains every metric that can be
    /// computed without a plan.
    #[strum(serialize = "Parquet")]
    Parquet,
}

impl Written {
    /// The formats by file-name ending.
    const ENDINGS: [(&str, Written); 6] = [
        ("csv", Written::Csv),
        ("xlsx", Written::Xlsx),
        ("json", Written::Json),
        ("md", Written::Markdown),
        ("markdown", Written::Markdown),
        ("parquet", Written::Parquet),
    ];

    /// Returns the format that `--format` or the file's extension specifies; CSV if neither does. An
    /// extension is rejected if it contradicts `--format`, or if it is unknown and `--format` is missing.
    fn of(args: &ExportArgs) -> Result<Written, Failure> {
        let Some(path) = args.output.as_deref() else { return Ok(args.format.unwrap_or(Written::Csv)) };
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let by_name =
            Self::ENDINGS.iter().find(|(known, _)| Some(*known) == ending.as_deref()).map(|(_, format)| *format);
        match (args.format, by_name, &ending) {
            (Some(format), Some(named), _) if format != named => Err(Failure::Usage(format!(
                "{} has the extension of {}, but {} was requested by --format {}: rename the file, or remove --format",
                path.display(),
                named.name(),
                format.name(),
                format.name().to_lowercase()
            ))),
            (None, None, Some(ending)) => Err(Failure::Usage(format!(
                "{} has the unknown extension `.{ending}`: use .csv, .xlsx, .json, .md or .parquet, or set the format \
                 with --format",
                path.display()
            ))),
            (format, named, _) => Ok(format.or(named).unwrap_or(Written::Csv)),
        }
    }

    fn name(self) -> &'static str {
        self.into()
    }
}

/// Writes the requested tables.
pub(super) fn run(args: ExportArgs) -> Result<Exit, Failure> {
    args.changes.need(args.plan.as_deref())?;
    let written = Written::of(&args)?;
    check(&args, written)?;
    let store = if args.plan.is_some() { args.folder.store()? } else { args.folder.whole_store()? };
    let workspace = args.plan.as_deref().map(|plan| Workspace::open(plan, &args.changes, &args.folder)).transpose()?;
    let picked = workspace.as_ref().map(|workspace| workspace.picked(&args.selection)).transpose()?.unwrap_or_default();
    if workspace.is_none() {
        warn_of_no_inventory(&store);
    }
    let source = Source::of(&store, workspace.as_ref().map(|workspace| (workspace, &picked[..])), &args.folder)?;
    if let (Some(plan), Some(workspace)) = (&args.plan, &workspace) {
        say_missing((plan, workspace), &picked, &args, source.given_up());
        variant::note(workspace, plan, &args.changes, &args.folder);
    }
    let few = matches!(written, Written::Csv | Written::Xlsx | Written::Markdown);
    let columns = Columns { patterns: &args.columns, wide: args.wide, few, marked: written == Written::Markdown };
    let rows = args.rows.first().copied().unwrap_or(Rows::Runs);
    if let Some(said) = source.said_of_given_up(rows, args.wide || (written == Written::Parquet && rows == Rows::Runs))
    {
        stderr::complain(&said);
    }
    let exit = match written {
        Written::Xlsx => workbook(&args, &source, columns)?,
        Written::Parquet if rows == Rows::Runs => return runs_as_parquet(&args, &source),
        Written::Parquet => one_kind(&args, &Parquet, &source, rows, columns)?,
        Written::Csv => one_kind(&args, &Csv, &source, rows, columns)?,
        Written::Json => one_kind(&args, &Json, &source, rows, columns)?,
        Written::Markdown => one_kind(&args, &Markdown, &source, rows, columns)?,
    };
    Ok(source.left_out.exit(exit))
}

/// Reports how many of the runs have no result yet, not counting those that were given up.
fn say_missing((plan, workspace): (&Path, &Workspace), picked: &[&PlannedRun], args: &ExportArgs, given_up: usize) {
    let missing = picked.iter().filter(|run| !workspace.disk.has(&run.id)).count().saturating_sub(given_up);
    if missing > 0 {
        let plan = quoted(&plan.to_string_lossy());
        let (changes, folder) = (args.changes.typed(quoted), args.folder.typed());
        let selection = args.selection.typed(quoted);
        stderr::complain(&format!(
            "note: {missing} of the plan's {} runs have no result yet: run `sweepline run \
             {plan}{changes}{selection}{folder}`",
            picked.len()
        ));
    }
}

/// Writes the table of one kind of rows; if there are no such rows, reports the reason.
fn one_kind(
    args: &ExportArgs,
    format: &dyn Format,
    source: &Source,
    rows: Rows,
    columns: Columns,
) -> Result<Exit, Failure> {
    let (sheet, count) = watched(columns.table(source, rows)?);
    may_write(args, &sheet.columns)?;
    let exit = write(args.output.as_deref(), format, sheet)?;
    say_written(args.output.as_deref(), &[(rows.name(), count.get())]);
    say_none(source, rows, &count);
    Ok(exit)
}

/// Refuses to overwrite a file that was not written by an export; `columns` are the columns to be
/// written.
fn may_write(args: &ExportArgs, columns: &[Column]) -> Result<(), Failure> {
    let Some(path) = &args.output else { return Ok(()) };
    args.overwrite.check(path, "an export of sweepline", |path| is_export(path, columns).unwrap_or(false))
}

/// Returns the table, and a counter of the rows that have been written.
fn watched<'a>(sheet: Sheet<'a>) -> (Sheet<'a>, Rc<Cell<usize>>) {
    let count = Rc::new(Cell::new(0));
    let seen = Rc::clone(&count);
    let rows = sheet.rows.inspect(move |_| seen.set(seen.get() + 1));
    (Sheet { columns: sheet.columns, rows: Box::new(rows) }, count)
}

/// Reports the contents of a file on stderr; a table on stdout does not need such a report.
fn say_written(path: Option<&Path>, sheets: &[(&str, usize)]) {
    let Some(path) = path else { return };
    let sheet =
        |(name, count): &(&str, usize)| format!("{count} {} of {name}", if *count == 1 { "row" } else { "rows" });
    let sheets: Vec<String> = sheets.iter().map(sheet).collect();
    stderr::complain(&format!("{}: {}", path.display(), sheets.join(", ")));
}

fn say_none(source: &Source, rows: Rows, count: &Cell<usize>) {
    let why = if count.get() > 0 { None } else { source.why_none(rows) };
    if let Some(why) = why {
        stderr::complain(&why);
    }
}

/// Rejects requests that cannot be fulfilled, before anything is read.
fn check(args: &ExportArgs, written: Written) -> Result<(), Failure> {
    let usage = |text: String| Err(Failure::Usage(text));
    let kinds: BTreeSet<Rows> = args.rows.iter().copied().collect();
    let of_runs = kinds.is_empty() || kinds == BTreeSet::from([Rows::Runs]);
    if !args.selection.is_everything() && args.plan.is_none() {
        return usage("--only and --skip select runs of a plan: name the PLAN".to_owned());
    }
    if !args.selection.is_everything() && written == Written::Parquet && of_runs && args.output.is_none() {
        return usage(
            "runs.parquet in the results folder contains every run: name a file for the selected runs, -o FILE".into(),
        );
    }
    if kinds.len() > 1 && written != Written::Xlsx {
        return usage(format!(
            "{} contains one kind of row: name the kind in --rows, or use --format xlsx",
            written.name()
        ));
    }
    if args.wide && kinds.iter().any(|rows| !matches!(rows, Rows::Runs | Rows::Classes)) {
        return usage("--wide is a pivot of runs or classes: remove --rows, or use --rows classes".to_owned());
    }
    if args.wide && written == Written::Parquet {
        return usage(
            "a pivot mixes texts and numbers in a column, which Parquet does not support: use csv, xlsx or json".into(),
        );
    }
    if written == Written::Parquet && of_runs && !args.columns.is_empty() {
        return usage(
            "runs.parquet always has all columns; --columns applies to the other formats and rows".to_owned(),
        );
    }
    let binary = written == Written::Xlsx || (written == Written::Parquet && !of_runs);
    if binary && args.output.is_none() {
        return usage(format!("{} is a binary format: name a file with -o FILE", written.name()));
    }
    Ok(())
}

/// Writes a workbook with the requested rows, or with all applicable kinds.
fn workbook(args: &ExportArgs, source: &Source, columns: Columns) -> Result<Exit, Failure> {
    let asked = |rows: &Rows| args.rows.contains(rows) || (args.rows.is_empty() && source.belongs(*rows, args.wide));
    let kinds: Vec<Rows> = Rows::ALL.into_iter().filter(asked).collect();
    // A user who names columns wants only these columns, so charts are omitted.
    let has_charts = kinds.contains(&Rows::Curves) && (columns.patterns.is_empty() || columns.has_all());
    columns.known(source, &kinds)?;
    may_write(args, &[])?;
    if let Some(rows) = kinds.iter().find(|rows| !source.fits_in_a_sheet(**rows)) {
        return Err(Failure::Usage(TooLong { rows: rows.name().to_owned(), most: most_rows() }.to_string()));
    }
    let mut book = Workbook::new();
    let path = args.output.as_deref();
    let mut sheets = Vec::new();
    for rows in kinds {
        // Each pattern is known to match columns of at least one sheet; a sheet without such columns is
        // omitted.
        if let Some(Chosen { table, all }) = columns.table_of_several(source, rows)? {
            let (table, count) = watched(table);
            book.add_part(rows.name(), table, all.unwrap_or_default()).map_err(|error| not_added(path, &error))?;
            say_none(source, rows, &count);
            sheets.push((rows.name(), count));
        }
    }
    let charts = if has_charts && !args.wide { source.charts() } else { Charts::default() };
    if !charts.is_empty() {
        book.add_charts(&charts).map_err(|error| cannot_write(path, &error))?;
    }
    let about = [
        ("program", concat!("sweepline ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("columns version", COLUMNS_VERSION.to_string()),
        ("analysis version", ANALYSIS.to_string()),
        ("plan", source.plan_name().unwrap_or("none: every run of the results folder").to_owned()),
        ("results", args.folder.results.display().to_string()),
        ("runs", source.runs().to_string()),
        ("made", jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string()),
    ];
    let Some(path) = path else { return Ok(Exit::Done) };
    replace(path, |out| book.write(&about, out)).map_err(|error| cannot_write(Some(path), &error))?;
    say_written(Some(path), &sheets.iter().map(|(name, count)| (*name, count.get())).collect::<Vec<_>>());
    Ok(Exit::Done)
}

/// Returns the failure for a table that could not be added to a workbook.
fn not_added(path: Option<&Path>, error: &std::io::Error) -> Failure {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<TooLong>()) {
        Some(too_long) => Failure::Usage(too_long.to_string()),
        None => cannot_write(path, error),
    }
}

fn write(path: Option<&Path>, format: &dyn Format, sheet: Sheet<'_>) -> Result<Exit, Failure> {
    let written = match path {
        // A table on a terminal is for people: control characters in its values must not move the cursor.
        None if std::io::stdout().is_terminal() => {
            let mut bytes = Vec::new();
            let written = format.write(sheet, &mut bytes);
            output::print(&String::from_utf8_lossy(&bytes))?;
            written
        }
        None => {
            let mut out = BufWriter::new(std::io::stdout());
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

/// Writes the runs as Parquet, by default to runs.parquet. Their metrics do not depend on a plan.
fn runs_as_parquet(args: &ExportArgs, source: &Source) -> Result<Exit, Failure> {
    let stored = source.stored();
    let count = stored.len();
    let bytes = runs_parquet::bytes(stored).map_err(|error| Failure::Unexpected(error.into()))?;
    may_write(args, &[])?;
    let default = args.folder.store()?.layout().root().join("runs.parquet");
    let path = args.output.as_deref().unwrap_or(&default);
    replace(path, |out| out.write_all(&bytes)).map_err(|error| match args.output {
        None => Failure::Store(StoreError::cannot_write(path, error)),
        Some(_) => cannot_write(Some(path), &error),
    })?;
    say_written(Some(path), &[(Rows::Runs.name(), count)]);
    Ok(source.left_out.exit(Exit::Done))
}
