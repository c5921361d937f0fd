//! `sweepline capacity PLAN` shows the load that each configuration sustains under the objective,
//! and the number of instances needed for a target load.

pub(super) mod document;

use clap::Args;
use document::Document;

use super::counting::Explain;
use super::results::ResultsArgs;
use crate::analysis::capacity::{Instance, Target};
use crate::analysis::curve::{self, Axis, Bracket, Curve, Ordinate, Rung};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::{TextOrJson, Why};
use crate::cli::output;
use crate::expand::launch::declared;
use crate::plan::{Plan, Slo};
use crate::report::format::fill;
use crate::report::{self, CapacityAnswer, Configuration, Replicas, Trail};
use crate::units::Share;

/// The arguments of `capacity`.
#[derive(Debug, Args)]
pub struct CapacityArgs {
    #[command(flatten)]
    asked: ResultsArgs,
    /// Target load of all instances together, in requests per second; by default, the load that one
    /// instance sustains is shown
    #[arg(long, value_name = "QPS", value_parser = above_zero, allow_negative_numbers = true)]
    target_qps: Option<f64>,
    /// Headroom on top of the target, like 20%
    #[arg(long, value_name = "SHARE", default_value = "0%", requires = "target_qps", allow_hyphen_values = true)]
    headroom: Share,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    explain: Explain,
}

fn above_zero(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "write requests per second, like 100".to_owned())?;
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err("write a number above 0".to_owned()) }
}

/// Prints the load that each configuration sustains and, if there is a target, the number of instances that
/// the target needs.
pub(super) fn run(args: CapacityArgs) -> Result<Exit, Failure> {
    args.explain.check(args.asked.format == TextOrJson::Text)?;
    let is_text = args.asked.format == TextOrJson::Text;
    let why = args.why.asked(is_text)?;
    let readings = args.asked.read()?;
    if readings.plan.slo.as_ref().is_none_or(Slo::is_empty) {
        let text = "capacity needs an objective, and the plan has none: add `slo` to it, or use --set \
                    'slo={ ttft: { p99: 500ms } }'";
        return Err(Failure::Usage(text.to_owned()));
    }
    let points = readings.points();
    let mut curves = curve::curves(&points, args.asked.include_invalid);
    Trail::tell(&readings.trails, &mut curves);
    let target = args.target_qps.map(|qps| Target { qps, headroom: args.headroom.to_f64() });
    // JSON contains every reason.
    let configurations = configurations(&curves, &readings.plan, why || !is_text);
    match args.asked.format {
        TextOrJson::Text => {
            let mut text = report::capacity(&configurations, target, readings.plan.slo.as_ref(), why);
            text.push_str(&of_searches(&readings.trails));
            if let Some(said) = readings.said_of_missing(&report::left_out(&curves)) {
                text.push_str(&format!("\n{said}\n"));
            }
            output::print_fitted(text.trim_start())?;
        }
        TextOrJson::Json => output::json(&Document::of(&readings, &configurations, target))?,
    }
    args.explain.below()?;
    Ok(readings.left_out.exit(Exit::Done))
}

/// Returns a configuration for each curve, with its capacity. `why` adds the reasons why limits are undecided.
pub(super) fn configurations<'a>(curves: &'a [Curve<'a>], plan: &Plan, why: bool) -> Vec<Configuration<'a>> {
    let of = |curve: &'a Curve<'a>| Configuration {
        curve,
        answer: answer(curve, plan, why),
        currency: plan.currency,
        replicas: replicas(plan, &curve.series.endpoint),
    };
    curves.iter().map(of).collect()
}

/// Returns the servers behind an endpoint's balancer; `None` if the plan does not declare their number.
fn replicas(plan: &Plan, endpoint: &str) -> Option<Replicas> {
    let endpoint = plan.endpoints.get(endpoint)?;
    let hardware = endpoint.hardware.as_ref()?;
    let count = hardware.replicas.filter(|count| *count > 0)?;
    let gpus = hardware.gpus().map(|gpus| format!("{} × ", gpus / count)).unwrap_or_default();
    let gpu = hardware.gpu.as_ref().map(|gpu| format!(", {gpus}{gpu}")).unwrap_or_default();
    let each = format!("{}{gpu}", endpoint.engine.name());
    Some(Replicas { count, each })
}

/// Returns the capacity of one instance according to its curve, or why the curve shows no capacity.
fn answer(curve: &Curve, plan: &Plan, why: bool) -> CapacityAnswer {
    let Some(found) = curve.bracket() else {
        return CapacityAnswer::Rejected(why_no_run_counts(curve));
    };
    if curve.axis == Axis::BatchSize {
        return CapacityAnswer::Closed(found);
    }
    let Some(holds) = found.holds else { return CapacityAnswer::Rejected(why_nothing_holds(curve, &found, why)) };
    let output = curve.rung(holds).zip(Ordinate::named("output_throughput"));
    let Some(output) = output.and_then(|(rung, reading)| rung.figure(reading)) else {
        return CapacityAnswer::Rejected(format!("at qps {holds} the output throughput is unknown"));
    };
    let axes = curve.series.axes.iter().map(|(axis, value)| (axis.as_str(), value.as_str()));
    let endpoint = plan.endpoints.get(&curve.series.endpoint);
    let hardware = endpoint.map(|endpoint| declared(endpoint, axes).hardware).unwrap_or_default();
    let instance = Instance {
        holds,
        misses: found.misses,
        bears: found.holds_arrived_rate.unwrap_or(holds),
        bears_less_than: found.misses_arrived_rate.or(found.misses),
        serves_at_most: curve.serves_at_most(),
        output_throughput: output.value,
        tokens_per_request: curve.rung(holds).and_then(Rung::output_tokens),
        gpus: hardware.gpus(),
        price_per_hour: hardware.cost_per_hour(),
        watts: hardware.watts().map(|watts| watts.to_f64()),
        measured: curve.rung(holds).and_then(Rung::tokens_per_joule),
    };
    CapacityAnswer::Holds { instance: Box::new(instance), bracket: found, output }
}

/// Returns the results of searches.
fn of_searches(trails: &[Trail]) -> String {
    let ended = trails.iter().filter(|trail| trail.chooses == "search" && trail.state == "done");
    let lines: String = ended.map(|trail| fill(" ", 4, &format!("{}: {}", trail.title(), trail.standing))).collect();
    match lines.is_empty() {
        true => lines,
        false => {
            format!("\nresults of searches\n{lines}")
        }
    }
}

/// Returns why none of a curve's runs can be used: all are invalid or were given up.
fn why_no_run_counts(curve: &Curve) -> String {
    let mut reasons: Vec<String> = curve.rungs.iter().filter_map(Rung::why_given_up).collect();
    reasons.dedup();
    let invalid = curve.rungs.iter().any(|rung| !rung.left_out.is_empty());
    match (reasons.is_empty(), invalid) {
        (true, _) => "no run counts: all are invalid".to_owned(),
        (false, false) => format!("no run counts: all were given up: {}", reasons.join(", ")),
        (false, true) => format!("no run counts: all are invalid or were given up: {}", reasons.join(", ")),
    }
}

/// Returns why no rung of a curve meets the objective, using one rung as the example: the lightest if it
/// misses the objective, otherwise the heaviest below the first that misses it. Of the rungs that do not miss
/// the objective, the heaviest has the most requests and the lowest cost.
fn why_nothing_holds(curve: &Curve, found: &Bracket, why: bool) -> String {
    let below = |rung: &&Rung| found.misses.is_none_or(|first| rung.load < first) && rung.answer().is_some();
    let heaviest =
        curve.rungs.iter().rfind(below).map(|rung| (rung, "the heaviest that is not shown to miss its latencies"));
    let lightest = || curve.rungs.iter().find(|rung| rung.answer().is_some()).map(|rung| (rung, "the lightest"));
    let axis = curve.axis.name();
    let highest = report::highest(curve, axis).unwrap_or_default();
    let Some((rung, which)) = heaviest.or_else(lightest) else { return highest };
    let said = report::why_not_held(rung, why);
    let head = if curve.search.is_some() { highest } else { "no load is shown to hold".to_owned() };
    format!("{head}; {axis} {}, {which}: {}", rung.load, said.join("; "))
}
