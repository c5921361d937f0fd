//! `sweepline decide PLAN --accept EXPR --because TEXT` keeps a decision record in Markdown next to
//! the plan. Each call updates the numbers of the record and leaves its prose unchanged.

mod choice;
pub(super) mod document;
mod record;

use std::path::{Path, PathBuf};

use clap::Args;
use document::Document;
use record::{Record, Stale, bytes_of};
use sha2::{Digest, Sha256};

use super::replace::{Overwrite, cannot_write, replace};
use super::results::{PlanRuns, Readings};
use crate::analysis::curve;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson};
use crate::cli::{capacity, compare, output, stderr};
use crate::lint::{self, Lint};
use crate::plan::Slo;
use crate::report::decision::{Decided, Evidence, MeasuredRun, inert, parts};
use crate::report::format::plain;
use crate::units::text::{hex, quoted};

/// The arguments of `decide`.
#[derive(Debug, Args)]
pub struct DecideArgs {
    #[command(flatten)]
    runs: PlanRuns,
    /// The configuration to accept, as an expression like that of --only: "endpoint == 'vllm' and sweep ==
    /// 'rates'"; add a load (qps == 20) to accept only that load. The default is the configuration that
    /// the existing record accepts
    #[arg(long, value_name = "EXPR", conflicts_with = "check")]
    accept: Option<String>,
    /// The reason for the decision, in your own words; by default the reason in the existing record
    #[arg(long, value_name = "TEXT", conflicts_with = "check")]
    because: Option<String>,
    /// Name of the person who decides
    #[arg(long, value_name = "NAME", conflicts_with = "check")]
    by: Option<String>,
    /// The file of the record; by default the plan's name with the suffix .decision.md
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write nothing; exit with 4 if the record differs from the current results
    #[arg(long)]
    check: bool,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    folder: Folder,
}

/// Writes, updates or checks a record.
pub(super) fn run(args: DecideArgs) -> Result<Exit, Failure> {
    let path = args.output.clone().unwrap_or_else(|| args.runs.plan().with_extension("decision.md"));
    let record = earlier(&path, args.overwrite)?;
    if args.check && record.is_none() {
        return Err(Failure::Usage(format!(
            "{}: no record to check: create one with --accept and --because",
            path.display()
        )));
    }
    let workspace = args.runs.open(&args.folder)?;
    let picked = args.runs.picked(&workspace)?;
    let readings = args.runs.read(&workspace, &args.folder)?;
    // The results of `calibrate` on this host do not belong in a record that others check on their own
    // hosts.
    let lints = lint::lint(&workspace.loaded, None);
    let points = readings.points();
    let curves = curve::curves(&points, false);
    if curves.is_empty() {
        return Err(Failure::Usage("no run of the plan has a load: there is no configuration to decide on".to_owned()));
    }
    let has_objective = readings.plan.slo.as_ref().is_some_and(|slo| !Slo::is_empty(slo));
    let configurations = if has_objective { capacity::configurations(&curves, &readings.plan) } else { Vec::new() };
    let comparison = compare::of_readings(&workspace, &picked, &readings, &lints);
    let evidence = Evidence {
        plan: &readings.plan,
        file: file_name(args.runs.plan()),
        sha256: sha256(args.runs.plan())?,
        set: args.runs.changes().set_paths(),
        chosen: args.runs.selection().typed(quoted),
        runs: measured(&readings),
        without: readings.without.iter().map(|run| run.state).collect(),
        curves: &curves,
        configurations: &configurations,
        trails: &readings.trails,
        comparison: comparison.as_ref(),
        mixed: readings.mixed_servers(),
        lints: lints.iter().map(told).collect(),
    };
    let mut decisions = record.as_ref().map(|record| record.decisions.clone()).unwrap_or_default();
    let accepted = match &args.accept {
        Some(text) => {
            let (at, chosen) = choice::chosen(text, (workspace.plan(), &workspace.expansion.runs), &evidence)?;
            let stands = decisions.last().filter(|last| last.configuration == chosen);
            let outcome = evidence.standings(at, chosen.load)[at].outcome;
            match (stands, &args.because) {
                (None, None) => return Err(no_reason(&path, decisions.last())),
                (Some(_), _) => {}
                (None, Some(because)) => decisions.push(Decided {
                    configuration: chosen,
                    name: evidence.name(at),
                    outcome,
                    because: because.clone(),
                    by: args.by.clone(),
                    on: today(),
                }),
            }
            at
        }
        None => match decisions.last() {
            Some(last) => choice::again(&last.configuration, &plain(&last.name), &evidence)?,
            None => return Err(no_acceptance(&path)),
        },
    };
    restate(&mut decisions, &args, (&evidence, accepted));
    let Some(parts) = parts(&evidence, accepted, &decisions) else { return Err(no_acceptance(&path)) };
    let stale = record.as_ref().map(|record| record.stale(&parts)).unwrap_or_default();
    if !args.check {
        let text = match &record {
            Some(record) => {
                record.is_untouched(&path)?;
                record.with(&parts, &decisions)?
            }
            None => record::new(&inert(&readings.plan.name), &parts, &decisions)?,
        };
        replace(&path, |out| out.write_all(text.as_bytes())).map_err(|error| cannot_write(Some(&path), &error))?;
    }
    let document = Document::of(&evidence, accepted, &decisions, (&path, args.check.then_some(stale.is_empty())));
    match args.format {
        TextOrJson::Json => output::json(&document)?,
        TextOrJson::Text => stderr::complain(&document.line()),
    }
    if args.check && !stale.is_empty() {
        stderr::complain(&said_of(&path, &stale));
        return Ok(Exit::Gate);
    }
    Ok(readings.left_out.exit(Exit::Done))
}

/// Returns the existing record; `None` if there is no file yet, or if the file is not a record and may be
/// overwritten.
fn earlier(path: &Path, overwrite: Overwrite) -> Result<Option<Record>, Failure> {
    if Record::is_one(path) {
        return Record::read(path).map(Some);
    }
    overwrite.check(path, "a record of sweepline decide", |_| false)?;
    Ok(None)
}

/// If the flags give another reason for the current decision, or name another person who decided, adds a
/// new decision and keeps the earlier one.
fn restate(decisions: &mut Vec<Decided>, args: &DecideArgs, (evidence, accepted): (&Evidence, usize)) {
    let Some(last) = decisions.last() else { return };
    let because = args.because.as_ref().unwrap_or(&last.because);
    let by = args.by.as_ref().or(last.by.as_ref());
    if *because != last.because || by != last.by.as_ref() {
        let outcome = evidence.standings(accepted, last.configuration.load)[accepted].outcome;
        let name = evidence.name(accepted);
        let again = Decided { name, outcome, because: because.clone(), by: by.cloned(), on: today(), ..last.clone() };
        decisions.push(again);
    }
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

fn no_reason(path: &Path, earlier: Option<&Decided>) -> Failure {
    let text = match earlier {
        Some(earlier) => format!(
            "{} accepts {}: to accept something else, state the reason with --because TEXT",
            path.display(),
            plain(&earlier.name)
        ),
        None => "a decision needs a reason: add --because TEXT".to_owned(),
    };
    Failure::Usage(text)
}

fn no_acceptance(path: &Path) -> Failure {
    let path = path.display();
    Failure::Usage(format!(
        "there is no record {path} yet: specify what to accept with --accept EXPR, and the reason with --because TEXT"
    ))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn sha256(path: &Path) -> Result<String, Failure> {
    Ok(hex(&Sha256::digest(bytes_of(path)?)))
}

fn measured(readings: &Readings) -> Vec<MeasuredRun<'_>> {
    let of = readings.runs.iter();
    of.map(|run| MeasuredRun { sweep: &run.sweep, record: &run.record, verdict: &run.answered.verdict }).collect()
}

/// Returns the message of a lint, with the lint's code and the parts of the plan that it concerns.
fn told(lint: &Lint) -> String {
    let about: Vec<String> = lint.scopes.iter().map(ToString::to_string).collect();
    format!("{} ({}): {}", lint.code, about.join(", "), lint.message)
}

/// Maximum number of differences that are shown if a record is outdated.
const MOST: usize = 5;

fn said_of(path: &Path, stale: &[Stale]) -> String {
    let path = path.display();
    let mut out = format!("{path} differs from the current plan and results:");
    for Stale { line, written, now } in stale.iter().take(MOST) {
        out.push_str(&format!("\n  line {line}: {}\n      now: {}", plain(written), plain(now)));
    }
    if stale.len() > MOST {
        out.push_str(&format!("\n  and {} more parts", stale.len() - MOST));
    }
    out + "\n`sweepline decide PLAN` without --check updates it"
}
