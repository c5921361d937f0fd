//! `sweepline calibrate [PLAN]` measures how large the load generator's own error is on this machine, and
//! up to which load this error stays small.

use std::path::{Path, PathBuf};

use clap::Args;
use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::Serialize;

use super::changes::Changes;
use super::interrupt::listen_for_signals;
use super::limits::{Limits, raise_file_limit};
use super::workspace::expansion;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, Loudness, TextOrJson};
use crate::cli::output;
use crate::expand::{Expansion, Load, Pending, Waits};
use crate::plan::Arrivals;
use crate::report::calibration;
use crate::report::format::plain;
use crate::report::progress::Screen;
use crate::store::Writer;
use crate::sweep::calibrate::{Calibration, CalibrationLoad, Said, Task, Timing, calibrate, of_flags, of_plan};
use crate::units::{Decimal, Nanos};

/// Help heading for the flags that set a load without a plan.
const WITHOUT_PLAN: &str = "The load, without a plan";
/// The highest accepted rate, in requests per second; the same as in plans.
const MOST_QPS: u32 = 1_000_000;
/// The default number of requests in flight if no plan is given.
const BATCH_SIZE: u32 = 64;

/// The arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// The plan that defines the loads (rates, concurrency, lengths) and the timing of embedded mocks
    #[arg(value_name = "PLAN")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    load: LoadArgs,
    /// The mock's time to first token [default: as in the plan's mock, else 20ms]
    #[arg(long, value_name = "TIME", help_heading = "The server")]
    ttft: Option<Nanos>,
    /// The mock's time between tokens [default: as in the plan's mock, else 4ms]
    #[arg(long, value_name = "TIME", help_heading = "The server")]
    itl: Option<Nanos>,
    /// Minimum length of each load's window; a window is extended to at most three times this length if it then
    /// contains enough requests for a 99th percentile
    #[arg(long = "for", value_name = "TIME", default_value = "2s", value_parser = some_time)]
    at_least: Nanos,
    /// Time limit of the calibration; loads whose measurement would exceed it are skipped, except for the
    /// heaviest load
    #[arg(long, value_name = "TIME", default_value = "60s")]
    within: Nanos,
    /// Do not search for the highest load at which the error stays below 1 ms
    #[arg(long)]
    no_search: bool,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    loudness: Loudness,
}

/// The measurements, and the file in which they are stored.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Document<'a> {
    /// Path of the calibration file; null if nothing was measured, because no file is written in that
    /// case.
    #[schemars(with = "Option<String>")]
    file: Option<&'a Path>,
    /// The contents of the file.
    calibration: &'a Calibration,
    /// Loads of the plan that were not measured because the sweeps that determine them have no result yet,
    /// each with its reason.
    not_known: &'a [String],
}

/// The flags that set a load without a plan.
#[derive(Debug, Args)]
struct LoadArgs {
    /// Requests in flight; may be given several times [default without --qps: 64]
    #[arg(long, help_heading = WITHOUT_PLAN, value_name = "N", conflicts_with = "plan", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch_size: Vec<u32>,
    /// Requests per second, arriving as a Poisson process; may be given several times
    #[arg(long, help_heading = WITHOUT_PLAN, value_name = "RATE", conflicts_with = "plan", value_parser = some_rate)]
    qps: Vec<Decimal>,
    /// Tokens per prompt [default: 50]
    #[arg(long, help_heading = WITHOUT_PLAN, value_name = "TOKENS", conflicts_with = "plan", value_parser = clap::value_parser!(u32).range(16..))]
    prompt_tokens: Option<u32>,
    /// Output tokens per response [default: 256]
    #[arg(long, help_heading = WITHOUT_PLAN, value_name = "TOKENS", conflicts_with = "plan", value_parser = clap::value_parser!(u32).range(1..))]
    output_tokens: Option<u32>,
}

fn some_time(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error: crate::units::UnitError| error.0)?;
    if time == Nanos::ZERO { Err("a window must be longer than 0s".to_owned()) } else { Ok(time) }
}

fn some_rate(text: &str) -> Result<Decimal, String> {
    let rate: Decimal = text.parse().map_err(|error: crate::units::UnitError| error.0)?;
    match rate.to_f64() <= f64::from(MOST_QPS) {
        _ if !rate.is_positive() => Err("a rate must be above 0".to_owned()),
        true => Ok(rate),
        false => Err(format!("a rate must be at most {MOST_QPS}, as in plans")),
    }
}

/// Rejects windows that are longer than the total time, because the first window alone would exceed
/// `--within`. With `--within 0s` only the heaviest load is measured, however long it takes.
fn refuse_endless(args: &CalibrateArgs) -> Result<(), Failure> {
    let (window, within) = (args.at_least, args.within);
    if within == Nanos::ZERO || window <= within {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "a single window (--for {window}) is longer than the time limit (--within {within}): shorten --for, or raise \
         --within"
    )))
}

/// Measures, prints and stores a calibration.
pub(super) fn run(args: CalibrateArgs) -> Result<Exit, Failure> {
    refuse_endless(&args)?;
    args.changes.need(args.plan.as_deref())?;
    let timing = Timing { ttft: args.ttft, itl: args.itl };
    let mut not_known = Vec::new();
    let (plan, loads) = match &args.plan {
        None => (None, args.load.loads(timing, args.at_least)),
        Some(path) => {
            let plan = args.changes.load(path)?.plan;
            let expansion = expansion(&args.folder.store()?, &plan)?;
            not_known = unknown_loads(&expansion);
            (Some(plan.name.clone()), of_plan(&expansion, timing, args.at_least))
        }
    };
    let task = Task {
        plan,
        loads,
        at_least: args.at_least,
        within: args.within,
        search: !args.no_search,
        most_files: Limits::read().files.unwrap_or(u64::MAX),
    };
    if let Some(lack) = task.lack_of_files() {
        return Err(Failure::Usage(lack));
    }
    raise_file_limit();
    let writer = args.folder.writer()?;
    let stop = listen_for_signals()?;
    let screen = args.loudness.screen();
    not_known.iter().for_each(|line| screen.line(&format!("not calibrated: {line}")));
    let mut tell = |said: Said| match said {
        Said::Begun(load, takes) => screen.line(&format!("{load}, about {:.0} s", takes.secs())),
        Said::Measured(measured) if args.loudness.verbose => screen.line(&calibration::brief(measured)),
        Said::Measured(_) => {}
    };
    let measured = calibrate(&task, &writer.scratch()?, stop, &mut tell);
    let Ok(calibration) = measured else { return Ok(Exit::Interrupted) };
    keep(&calibration, &not_known, &writer, &args, &screen)
}

/// Returns the loads that earlier sweeps have not found, each with the reason, without duplicates.
fn unknown_loads(expansion: &Expansion) -> Vec<String> {
    let is_unknown = |pending: &&Pending| matches!(pending.state, Waits::Pending | Waits::Blocked);
    let line = |pending: &Pending| {
        let axes = ["qps", "batch_size"].iter().filter_map(|axis| Some((axis, pending.cell.get(axis)?)));
        let load = axes.map(|(axis, value)| format!("{axis} {value}")).collect::<Vec<_>>().join(", ");
        plain(&format!("{}: {load}: {}", pending.sweep, pending.why))
    };
    expansion.pending.iter().filter(is_unknown).map(line).collect::<IndexSet<String>>().into_iter().collect()
}

/// Stores and prints the measurements, and returns the matching exit code.
fn keep(
    calibration: &Calibration,
    not_known: &[String],
    writer: &Writer,
    args: &CalibrateArgs,
    screen: &Screen,
) -> Result<Exit, Failure> {
    // A calibration that measured nothing contains no information about this machine, and must not replace
    // an earlier one that does.
    let file = match calibration.loads.is_empty() {
        true => None,
        false => {
            let host = &calibration.environment.client_host;
            Some(writer.keep_calibration(calibration.started, host, calibration)?)
        }
    };
    match args.format {
        TextOrJson::Text => output::print_fitted(&calibration::text(calibration))?,
        TextOrJson::Json => output::json(&Document { file: file.as_deref(), calibration, not_known })?,
    }
    let Some(file) = file else {
        screen.line("nothing was measured, so nothing was saved");
        return Ok(Exit::Runs);
    };
    screen.line(&format!("saved as {}", file.display()));
    let failed = calibration.unmeasured.iter().any(|load| load.failed);
    Ok(if failed { Exit::Runs } else { Exit::Done })
}

impl LoadArgs {
    /// Returns the requested loads, batch sizes first.
    fn loads(&self, timing: Timing, at_least: Nanos) -> Vec<CalibrationLoad> {
        let batches: &[u32] =
            if self.batch_size.is_empty() && self.qps.is_empty() { &[BATCH_SIZE] } else { &self.batch_size };
        let closed = batches.iter().map(|&batch_size| Load::Closed { batch_size });
        let open = self.qps.iter().map(|&qps| Load::Open { qps, arrivals: Arrivals::default(), cap: None });
        let tokens = (self.prompt_tokens.unwrap_or(50), self.output_tokens.unwrap_or(256));
        closed.chain(open).map(|load| of_flags(load, tokens, timing).fitting(at_least)).collect()
    }
}
