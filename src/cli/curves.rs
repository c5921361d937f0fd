//! `sweepline curves PLAN`: what each load brings and costs, where curves bend, and up to which load the objective holds.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::analysis::curve::{self, Axis, Bracket, Curve, FIGURES, Knee, Rung};
use crate::analysis::replicates::Ends;
use crate::report::{curves as page, fronts};

use super::readings::{Asked, Readings};
use super::{Exit, Failure, TextOrJson, output};

/// The arguments of `curves`.
#[derive(Debug, Args)]
pub struct CurvesArgs {
    #[command(flatten)]
    asked: Asked,
}

/// Shows the curves of a plan.
pub fn run(args: CurvesArgs) -> Result<Exit, Failure> {
    let readings = args.asked.read()?;
    let points = readings.points();
    let curves = curve::curves(&points, args.asked.include_invalid);
    match args.asked.format {
        TextOrJson::Text => text(&readings, &curves)?,
        TextOrJson::Json => output::json(&document(&readings, &curves))?,
    }
    Ok(Exit::Done)
}

fn text(readings: &Readings, curves: &[Curve]) -> Result<(), Failure> {
    let mut out = page(curves);
    out.push_str(&fronts(curves));
    let left_out = curves.iter().flat_map(|curve| &curve.rungs).map(|rung| rung.left_out.len()).sum();
    if let Some(said) = readings.said_of_missing(left_out) {
        out.push_str(&format!("\n{said}\n"));
    }
    output::print(out.trim_start())
}

fn document(readings: &Readings, curves: &[Curve]) -> Value {
    let fronts = curve::on_fronts(curves);
    let of_curve = |(curve, on): (&Curve, &Vec<[bool; 2]>)| {
        let axes: Map<String, Value> = curve.series.axes.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
        let rungs: Vec<Value> = curve.rungs.iter().zip(on).map(|(one, on)| rung(one, *on)).collect();
        json!({
            "sweep": curve.series.sweep, "endpoint": curve.series.endpoint, "model": curve.series.model,
            "scenario": curve.series.scenario, "cap": curve.series.cap, "axes": axes, "load": curve.axis.name(),
            "rungs": rungs, "knee": knee(&curve.knee(), curve.axis), "saturation": saturation(curve),
            "slo": curve.bracket().map(|found| bracket(&found)),
        })
    };
    let curves: Vec<Value> = curves.iter().zip(&fronts).map(of_curve).collect();
    json!({ "plan": readings.plan.name, "missing": readings.missing, "curves": curves })
}

fn rung(rung: &Rung, [user_over_gpu, throughput_over_p99]: [bool; 2]) -> Value {
    let ids = |runs: &[curve::Run]| -> Vec<String> { runs.iter().map(|run| run.labels.run_id.clone()).collect() };
    let is_open = rung.runs.first().is_some_and(|run| run.labels.qps.is_some());
    let figure = |reading: &curve::Reading| {
        let unit = reading.metric(is_open).unit.suffix();
        let value = rung.figure(reading).map(|figure| {
            let ends = figure.ends.map(|Ends { low, high, kind }| json!([low, high, kind.name()]));
            let [low, high, kind] = match &ends {
                Some(Value::Array(parts)) => [parts[0].clone(), parts[1].clone(), parts[2].clone()],
                _ => [Value::Null, Value::Null, Value::Null],
            };
            json!({ "value": figure.value, "low": low, "high": high, "interval": kind, "few_samples": figure.few_samples })
        });
        (format!("{}{unit}", reading.name), value.unwrap_or(Value::Null))
    };
    let figures: Map<String, Value> = FIGURES.iter().map(figure).collect();
    json!({
        "load": rung.load, "runs": ids(&rung.runs), "left_out": ids(&rung.left_out), "saturated": rung.is_saturated(),
        "slo": rung.answer().map(|answer| answer.name()), "figures": figures,
        "pareto": { "user_over_gpu": user_over_gpu, "throughput_over_p99": throughput_over_p99 },
    })
}

fn knee(knee: &Knee, axis: Axis) -> Value {
    let method = match axis {
        Axis::Qps => "most throughput over latency",
        Axis::BatchSize => "where the bounds of few and of many requests in flight meet",
    };
    match *knee {
        Knee::At { load, between: (low, high) } => {
            json!({ "found": "at", "load": load, "between": [low, high], "method": method })
        }
        Knee::Before(load) => json!({ "found": "at_or_below", "load": load, "method": method }),
        Knee::NotReached(rise) => json!({ "found": "not_reached", "rise": rise, "method": method }),
        Knee::TooFew(loads) => json!({ "found": "too_few_loads", "loads": loads, "method": method }),
    }
}

/// The bracket as JSON, as `capacity` has it too.
pub fn bracket(found: &Bracket) -> Value {
    let Bracket { holds, misses, undecided, out_of_order } = found;
    json!({ "holds": holds, "misses": misses, "undecided": undecided, "out_of_order": out_of_order })
}

fn saturation(curve: &Curve) -> Value {
    let (kept, saturated) = curve.saturation();
    json!({ "kept_up": kept, "saturated": saturated })
}
