//! `sweepline report PLAN` writes the results of a plan to one HTML file. It combines the answers
//! of `curves`, `capacity`, `compare` and `diagnose`, and computes nothing itself.

mod asked;
mod figures;
mod file;
mod generator;
mod spreads;
mod timeline;
mod watch;

use std::path::{Path, PathBuf};

use asked::Asked;
use clap::Args;
use indexmap::IndexSet;
use spreads::Spreads;

use super::answers::Answered;
use super::replace::{Overwrite, begins_with};
use super::results::{PlanRuns, Readings, RunResult, Without};
use crate::analysis::ANALYSIS;
use crate::analysis::curve;
use crate::cli::diagnose::{self, Looked};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::Folder;
use crate::cli::{capacity, compare, lints, stderr};
use crate::lint::Lint;
use crate::plan::Slo;
use crate::report::html::{ClassCurves, MeasuredRun, PageError, Report, RunWithout, Sources};
use crate::report::{Bound, Trail, left_out};
use crate::units::text::counted;

/// The arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    runs: PlanRuns,
    /// The file to write: one self-contained HTML file that makes no network requests
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Instead of writing a file, serve the live page of a running or finished sweep on 127.0.0.1 until
    /// interrupted
    #[arg(long, conflicts_with_all = ["output", "figures", "force"])]
    watch: bool,
    /// The port to serve on; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value = "0", requires = "watch")]
    port: u16,
    /// Also write each figure into this folder, as SVG and as PNG
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    folder: Folder,
}

/// Writes the report, or serves it.
pub(super) fn run(args: ReportArgs) -> Result<Exit, Failure> {
    let asked = Asked { runs: args.runs, folder: args.folder };
    if args.watch {
        return watch::run(asked, args.port, made_of);
    }
    args.overwrite.check(&args.output, "a report of sweepline", is_report)?;
    let (readings, report) = made_of(&asked, None)?;
    let page = report.html().map_err(unexpected)?;
    let path = &args.output;
    file::write(path, page.as_bytes())?;
    if let Some(folder) = &args.figures {
        figures::write_all(folder, &report.figures().map_err(unexpected)?, args.overwrite)?;
    }
    let without = readings.without.len();
    let of = if without > 0 { format!("{} of ", readings.runs.len()) } else { String::new() };
    let (runs, size) = (counted(readings.runs.len() + without, "run"), page.len().div_ceil(1024));
    stderr::complain(&format!("{}: {of}{runs}, {size} KiB; open it in a browser", path.display()));
    if page.len() > LARGE {
        stderr::complain(
            "note: a page above 5 MB is slow to open and to send: select fewer runs with --only and --skip",
        );
    }
    Ok(readings.left_out.exit(Exit::Done))
}

fn unexpected(error: PageError) -> Failure {
    Failure::Unexpected(error.into())
}

/// Reads results and creates their report; `before` is the state of the previous read, if any.
fn made_of(args: &Asked, before: Option<Readings>) -> Result<(Readings, Report), Failure> {
    let workspace = args.runs.open(&args.folder)?;
    let picked = args.runs.picked(&workspace)?;
    let readings = args.runs.read_knowing(&workspace, &args.folder, before)?;
    let lints = lints::of(&workspace.loaded, &args.folder);
    let points = readings.points();
    let mut curves = curve::curves(&points, false);
    Trail::tell(&readings.trails, &mut curves);
    let has_objective = readings.plan.slo.as_ref().is_some_and(|slo| !Slo::is_empty(slo));
    let configurations =
        if has_objective { capacity::configurations(&curves, &readings.plan, false) } else { Vec::new() };
    let comparison = compare::of_readings(&workspace, &picked, &readings, &lints);
    let Looked { predicted, unpredicted, diagnoses, not_measured } =
        diagnose::look(&readings, &readings.measured(), &curves);
    let Spreads { drawn, left } = Spreads::of(&workspace.store, &readings, &curves);
    let sources = Sources {
        plan: &readings.plan,
        made: made(),
        run_again: args.runs.run_again(&args.folder),
        plan_typed: args.runs.typed(&args.folder),
        show: args.runs.show(&args.folder),
        runs: readings.runs.iter().map(measured).collect(),
        without: readings.without.iter().map(without).collect(),
        curves: &curves,
        configurations: &configurations,
        comparison: comparison.as_ref(),
        bound: Bound { predicted: &predicted, unpredicted: &unpredicted },
        diagnoses: &diagnoses,
        not_measured,
        classes: classes(&readings),
        calibrated: generator::clients(&workspace.store, &readings),
        calibrate: args.runs.calibrate(&args.folder),
        spreads: drawn,
        spreads_left: left,
        timeline: timeline::spans(&workspace, &picked, &readings),
        trails: &readings.trails,
        notes: notes(&readings, &curves),
        lints: lints.iter().map(told).collect(),
    };
    let report = Report::of(&sources).map_err(unexpected)?;
    Ok((readings, report))
}

/// Size above which a page is called large, in bytes.
const LARGE: usize = 5_000_000;

/// Whether a file is a report from an earlier call.
fn is_report(path: &Path) -> bool {
    begins_with(path, |text| text.contains("<meta name=\"generator\" content=\"sweepline "))
}

fn made() -> String {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC");
    format!("sweepline {}, analysis version {ANALYSIS}, {now}", env!("CARGO_PKG_VERSION"))
}

fn measured(run: &RunResult) -> MeasuredRun<'_> {
    let RunResult { sweep, record, answered } = run;
    let Answered { labels, metrics, verdict, classes, pulse, .. } = answered;
    MeasuredRun { sweep, record, labels, metrics, verdict, classes, pulse: pulse.as_ref() }
}

/// Returns the curves of each class of the plan's mixes, ordered by first occurrence.
fn classes(readings: &Readings) -> Vec<ClassCurves<'_>> {
    let names: IndexSet<&str> = readings.classes().collect();
    let of =
        |name: &str| ClassCurves { name: name.to_owned(), curves: curve::curves(&readings.points_of(name), false) };
    names.into_iter().map(of).collect()
}

fn without(run: &Without) -> RunWithout {
    let Without { sweep, labels, state, reason } = run;
    RunWithout { sweep: sweep.clone(), labels: labels.clone(), state, reason: reason.clone() }
}

fn notes(readings: &Readings, curves: &[curve::Curve]) -> Vec<String> {
    readings.parts_missing(&left_out(curves), "")
}

/// Returns the message of a lint, with the lint's code and the parts of the plan that it concerns.
fn told(lint: &Lint) -> String {
    let about: Vec<String> = lint.scopes.iter().map(ToString::to_string).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    format!("{}{about}: {}", lint.code, lint.message)
}
