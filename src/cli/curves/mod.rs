//! `sweepline curves PLAN` shows the figures and the cost of each load, where curves bend, and the load up to
//! which the objective is met.

pub(super) mod document;

use clap::Args;
use document::Document;

use super::class::OneClass;
use super::counting::Explain;
use super::results::{Readings, ResultsArgs};
use crate::analysis::curve::{self, Curve, Point};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{TextOrJson, Why};
use crate::cli::output;
use crate::plan::Slo;
use crate::report::format::{fill, plain};
use crate::report::{Trail, curves as page, few_once, fronts, is_unicode, left_out, plots};

/// The arguments of `curves`.
#[derive(Debug, Args)]
pub struct CurvesArgs {
    #[command(flatten)]
    asked: ResultsArgs,
    #[command(flatten)]
    class: OneClass,
    /// Plot throughput, TTFT and TPOT against load as charts in the terminal instead of printing tables
    #[arg(long)]
    plot: bool,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    explain: Explain,
}

/// Shows the curves of a plan.
pub(super) fn run(args: CurvesArgs) -> Result<Exit, Failure> {
    if args.plot && matches!(args.asked.format, TextOrJson::Json) {
        return Err(Failure::Usage("--plot works with text output only: remove --format json".to_owned()));
    }
    args.explain.check(args.asked.format == TextOrJson::Text)?;
    let why = args.why.asked(args.asked.format == TextOrJson::Text)?;
    let readings = args.asked.read()?;
    args.class.check(readings.classes())?;
    let class = args.class.name.as_deref();
    let points = class.map_or_else(|| readings.points(), |class| readings.points_of(class));
    let mut curves = curve::curves(&points, args.asked.include_invalid);
    Trail::tell(&readings.trails, &mut curves);
    match args.asked.format {
        TextOrJson::Text => {
            let above = class.map(|class| of_class(class, without(&readings, &points)));
            text(&readings, (&curves, args.plot, why), above)?;
        }
        TextOrJson::Json => output::json(&Document::of(&readings, &curves, class))?,
    }
    args.explain.below()?;
    Ok(readings.left_out.exit(Exit::Done))
}

/// Returns the number of measured or given-up runs that are not among `points`.
fn without(readings: &Readings, points: &[Point]) -> usize {
    readings.runs.len() + readings.given_up.len() - points.len()
}

/// Returns the text above the curves of one class; `without` is the number of runs that lack the class.
fn of_class(class: &str, without: usize) -> String {
    let class = plain(class);
    let without = match without {
        0 => String::new(),
        1 => format!(" 1 run has no class {class} and is excluded."),
        count => format!(" {count} runs have no class {class} and are excluded."),
    };
    let text = format!(
        "class {class}: figures cover only its requests, at loads of the whole mix; the objective covers all \
         requests.{without}"
    );
    fill("", 0, &text)
}

fn text(
    readings: &Readings,
    (curves, plot, why): (&[Curve], bool, bool),
    above: Option<String>,
) -> Result<(), Failure> {
    let mut out = above.unwrap_or_default();
    let slo = readings.plan.slo.as_ref().filter(|slo| !Slo::is_empty(slo));
    if plot {
        out.push_str(&plots(curves, slo, is_unicode(), why));
    } else {
        out.push_str(&page(curves, slo, why));
        out.push_str(&fronts(curves, slo));
    }
    if !readings.trails.is_empty() {
        let paths: String = readings.trails.iter().map(Trail::path).collect();
        out.push_str(&format!("\n{paths}"));
    }
    if let Some(said) = readings.said_of_missing(&left_out(curves)) {
        out.push_str(&format!("\n{said}\n"));
    }
    output::print_fitted(few_once(&out).trim_start())
}
