//! `sweepline show RUN` shows one run in full.

pub(super) mod document;

use std::path::PathBuf;

use clap::Args;
use document::Document;

use super::answers::Answered;
use super::changes::Changes;
use crate::analysis::slo::{self, Answer, SloTest};
use crate::analysis::{saturation, undecided};
use crate::cli::colour::Colour;
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{Folder, TextOrJson, Why};
use crate::cli::{answers, output, stderr, variant, workspace};
use crate::expand::{Expansion, expand};
use crate::plan::ResolvedPlan;
use crate::report::format::{fill, plain};
use crate::report::{Detail, Line, results, run as page};
use crate::store::{RunRecord, Store};

/// The arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A run: any unambiguous prefix of its id (`list` shows ids)
    #[arg(value_name = "RUN")]
    run: String,
    /// Judge the run by the thresholds, objective and prices of this plan
    #[arg(long, value_name = "PLAN")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    /// Explain each metric
    #[arg(long)]
    definitions: bool,
    #[command(flatten)]
    why: Why,
    /// Text for people, or JSON for programs
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    pub colour: Colour,
}

/// Shows a run.
pub(super) fn run(args: ShowArgs) -> Result<Exit, Failure> {
    args.changes.need(args.plan.as_deref())?;
    let why = args.why.asked(args.format == TextOrJson::Text)?;
    let loaded = args.plan.as_deref().map(|plan| args.changes.load(plan)).transpose()?;
    let plan: Option<&ResolvedPlan> = loaded.as_ref().map(|loaded| &loaded.plan);
    args.folder.must_exist()?;
    let store = args.folder.whole_store()?;
    let listed = store.find(&args.run)?;
    if let Some(error) = listed.unusable() {
        return Err(error.into());
    }
    let record = match listed.record {
        Some(record) => record,
        None => RunRecord::read(&listed.dir)?,
    };
    let answered = answers::read(&store, &record, plan.map(|plan| &**plan))?;
    if let (Some(path), Some(plan)) = (&args.plan, plan)
        && !holds(&store, plan, &record)
    {
        let variant = variant::of_records(path, &args.changes, std::slice::from_ref(&record));
        let variant = variant.map(|variant| format!("; it is a result {variant}")).unwrap_or_default();
        stderr::complain(&format!(
            "note: {} is not a run of {}, but is judged by that plan's thresholds, objective and prices{variant}",
            &record.id[..record.id.len().min(16)],
            path.display()
        ));
    }
    match args.format {
        TextOrJson::Text => {
            let lines: Vec<Line> = answered.lines().collect();
            let detail = Detail { definitions: args.definitions, colour: args.colour.on(&std::io::stdout()) };
            output::print_fitted(&page(
                &lines[0],
                (&record.facts, &record.environment),
                &answered.plan_metrics,
                answered.pulse.as_ref(),
                detail,
            ))?;
            if let Some(words) = record.environment.fingerprint.in_words() {
                output::print_fitted(&fill("", 2, &format!("server: {}", plain(&words))))?;
            }
            if !answered.classes.is_empty() {
                output::print_fitted(&format!("\nby class\n{}", results(&lines, detail.colour)))?;
                if !answered.metrics.server.is_empty() {
                    let text = "server metrics and parts of the time cover all classes together";
                    output::print_fitted(&fill("  ", 4, text))?;
                }
            }
            let cost = plan.and_then(|plan| plan.slo.as_ref()?.cost_per_million);
            let cost = cost.map(|limit| cost_line(limit.to_f64(), &answered));
            let is_saturated =
                answered.verdict.labels.iter().any(|label| label.name == saturation::State::Saturated.name());
            let lines: Vec<String> =
                answered.slo.iter().map(|test| slo_line(test, is_saturated, why)).chain(cost).collect();
            if !lines.is_empty() {
                output::print_fitted(&format!("\nslo\n{}", lines.join("\n")))?;
            }
        }
        TextOrJson::Json => output::json(&Document::of(&record, answered))?,
    }
    Ok(Exit::Done)
}

/// Whether a run belongs to a plan, that is, the plan requests it, its searches may request it, or
/// an earlier sweep found its load.
fn holds(store: &Store, plan: &ResolvedPlan, record: &RunRecord) -> bool {
    let has = |expansion: &Expansion| expansion.possible().any(|run| run.id.to_string() == record.id);
    expand(plan).is_ok_and(|expansion| has(&expansion))
        || workspace::expansion(store, plan).is_ok_and(|expansion| has(&expansion))
}

/// Formats one limit of the objective and its test in one line. An undecided limit is described by what was
/// observed; `why` adds the reason why it is not proven.
fn slo_line(test: &SloTest, is_saturated: bool, why: bool) -> String {
    let SloTest { metric, percentile, limit, above, n, alike_needed, evidence, answer, would_do } = test;
    let is_open = *answer == Answer::Undecided;
    // The objective as a whole is missed if the queue grows.
    let answered = match test.observed().filter(|_| is_open) {
        Some(observed) if is_saturated => format!("{observed} in this window, but the queue grows"),
        Some(observed) => format!("{observed}, not proven"),
        None => answer.name().to_owned(),
    };
    let is_undecided = is_open && *n > 0 && !is_saturated;
    let decides = if is_undecided { format!("; {}", test.would_decide()) } else { String::new() };
    let worth = undecided::worth(evidence).map(|worth| format!(", worth {worth} independent ones"));
    let worth = worth.filter(|_| why || !is_open).unwrap_or_default();
    let is_needed = why && is_undecided && *above == 0 && would_do.is_some();
    let need =
        if is_needed { format!("; {alike_needed} with none above it would show that it holds") } else { String::new() };
    let percentile = percentile.name();
    fill(
        "  ",
        4,
        &format!("{metric} {percentile} ≤ {limit}: {answered} ({above} of {n} above it{worth}{need}{decides})"),
    )
}

fn cost_line(limit: f64, answered: &Answered) -> String {
    let cost = answered.plan_metrics.cost_per_million_output_tokens;
    let said = cost.map_or_else(|| "unknown".to_owned(), |cost| format!("{cost:.2}"));
    format!("  cost per million output tokens ≤ {limit}: {} ({said})", slo::cost(cost, limit).name())
}
