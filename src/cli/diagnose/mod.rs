//! `sweepline diagnose PLAN` compares decode speed with the bound set by memory bandwidth, and
//! lists symptoms with their usual causes.

pub(super) mod document;

use clap::Args;
use document::Document;

use super::results::{Readings, ResultsArgs, RunResult};
use crate::analysis::curve::{self, Curve, Run};
use crate::analysis::diagnosis::{Diagnosis, Evident, Predicted, Twins, diagnose, not_measured};
use crate::analysis::roofline::{self, Memory, Prediction, Weights, Work};
use crate::cli::failure::{Exit, Failure};
use crate::cli::options::TextOrJson;
use crate::cli::output;
use crate::expand::canonical;
use crate::expand::launch::{Declared, declared};
use crate::plan::{Cache, Model, ModelShape, Plan, Scalar};
use crate::report::{self, Bound};

/// The arguments of `diagnose`.
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    #[command(flatten)]
    asked: ResultsArgs,
}

/// Looks for symptoms in the results of a plan.
pub(super) fn run(args: DiagnoseArgs) -> Result<Exit, Failure> {
    let readings = args.asked.read()?;
    let points = readings.measured();
    let curves = curve::curves(&points, args.asked.include_invalid);
    let Looked { predicted, unpredicted, diagnoses, not_measured } = look(&readings, &points, &curves);
    let bound = Bound { predicted: &predicted, unpredicted: &unpredicted };
    let saturated = report::saturated(&curves);
    match args.asked.format {
        TextOrJson::Text => {
            let mut text = report::diagnosis(&bound, &saturated, &diagnoses, &not_measured);
            if let Some(said) = readings.said_of_missing(&report::left_out(&curves)) {
                text.push_str(&format!("\n{said}\n"));
            }
            output::print_fitted(&text)?;
        }
        TextOrJson::Json => output::json(&Document::of(&readings, &bound, &saturated, &diagnoses, not_measured))?,
    }
    Ok(readings.left_out.exit(Exit::Done))
}

/// The findings of `diagnose`.
pub(super) struct Looked<'a> {
    /// The runs for which the plan declares enough to compute the bound, compared with their bounds.
    pub(super) predicted: Vec<Predicted<'a>>,
    /// The reasons why other runs have no bound, each listed once.
    pub(super) unpredicted: Vec<String>,
    /// Every symptom, found or not.
    pub(super) diagnoses: Vec<Diagnosis>,
    /// The figures that were not measured.
    pub(super) not_measured: String,
}

/// Looks for symptoms in the results that were read; `points` are all runs, and `curves` are made from
/// them.
pub(super) fn look<'a>(readings: &'a Readings, points: &[Run<'a>], curves: &[Curve<'a>]) -> Looked<'a> {
    let counting = |run: &Run| {
        curves.iter().flat_map(|curve| &curve.rungs).flat_map(|rung| &rung.runs).any(|one| one.labels == run.labels)
    };
    let (mut predicted, mut unpredicted) = (Vec::new(), Vec::new());
    for point in points.iter().filter(|point| counting(point)) {
        match prediction(&readings.plan, point) {
            Ok(prediction) => predicted.push(Predicted { run: *point, prediction }),
            Err(why) if unpredicted.contains(&why) => {}
            Err(why) => unpredicted.push(why),
        }
    }
    let twins = twins(&readings.runs, points);
    let batch_limits: Vec<(String, f64)> =
        points.iter().filter_map(|run| Some((run.labels.run_id.clone(), batch_limit(&readings.plan, run)?))).collect();
    let evident = Evident {
        curves,
        predicted: &predicted,
        unpredicted: &unpredicted,
        twins: &twins,
        token_limit_ms: token_limit(&readings.plan),
        batch_limits: &batch_limits,
    };
    let (diagnoses, not_measured) = (diagnose(&evident), not_measured(&evident));
    Looked { predicted, unpredicted, diagnoses, not_measured }
}

/// Returns the lowest limit of the objective on the time per token, in milliseconds; `None` if there is no
/// such limit.
fn token_limit(plan: &Plan) -> Option<f64> {
    let slo = plan.slo.as_ref()?;
    slo.tpot.values().chain(slo.itl.values()).map(|limit| limit.millis()).reduce(f64::min)
}

/// Returns the maximum number of requests that a run's server processes at once; `None` if the plan does
/// not declare it under one of the names that engines use.
fn batch_limit(plan: &Plan, run: &Run) -> Option<f64> {
    const NAMES: [&str; 5] = ["max_num_seqs", "max_running_requests", "max_concurrent_requests", "parallel", "slots"];
    let endpoint = plan.endpoints.get(&run.labels.endpoint)?;
    let axes = run.labels.axes.iter().map(|(axis, value)| (axis.as_str(), value.as_str()));
    let Declared { facts, .. } = declared(endpoint, axes);
    let number = |name: String| match facts.get(&name) {
        Some(Scalar::Number(value)) => Some(value.to_f64()),
        _ => None,
    };
    NAMES.iter().find_map(|name| number(format!("flags.{name}")).or_else(|| number((*name).to_owned())))
}

/// Returns the bound that memory bandwidth sets for a run, or which value is missing in the plan.
fn prediction(plan: &Plan, run: &Run) -> Result<Prediction, String> {
    let (endpoint_name, model_name) = (&run.labels.endpoint, &run.labels.model);
    let endpoint =
        plan.endpoints.get(endpoint_name).ok_or_else(|| format!("the plan has no endpoint {endpoint_name}"))?;
    let model = plan.models.get(model_name).ok_or_else(|| format!("the plan has no model {model_name}"))?;
    let axes = run.labels.axes.iter().map(|(axis, value)| (axis.as_str(), value.as_str()));
    let Declared { hardware, facts } = declared(endpoint, axes);
    let of = |what: &str| format!("endpoint {endpoint_name} declares no {what}");
    let gpus = hardware.gpus();
    let text = hardware.memory_bandwidth.ok_or_else(|| of("hardware: { memory_bandwidth: 3.35TB/s }"))?;
    let bandwidth = roofline::bandwidth(&text)
        .ok_or_else(|| format!("memory_bandwidth of {endpoint_name} is `{text}`: write it like 3.35TB/s"))?;
    let fact = |name: &str| match facts.get(name) {
        Some(Scalar::Number(value)) => Some(value.to_f64() as u32),
        _ => None,
    };
    let memory = Memory {
        bandwidth,
        gpus: gpus.unwrap_or(1),
        tensor_parallel: fact("tensor_parallel"),
        pipeline_parallel: fact("pipeline_parallel"),
    };
    let concurrency = run.metrics.flow.achieved_concurrency.ok_or_else(|| "a run without requests".to_owned())?;
    let work = Work { concurrency, context_tokens: run.tokens.context() };
    roofline::predict(weights(model_name, model)?, memory, work)
        .ok_or_else(|| format!("{endpoint_name} declares more accelerators in a group than it has"))
}

fn weights(name: &str, model: &Model) -> Result<Weights, String> {
    let Model { parameters, active_parameters, shape, precision, .. } = model;
    let parameters = parameters.ok_or_else(|| format!("model {name} declares no parameters (like 70.6e9)"))?;
    let precision = precision.as_deref().ok_or_else(|| format!("model {name} declares no precision (like bf16)"))?;
    let unknown = |text: &str| format!("the bytes per parameter of model {name} are unknown for `{text}`");
    let bytes = roofline::bytes_of(precision).ok_or_else(|| unknown(precision))?;
    let kv_bytes = match shape {
        None => None,
        Some(ModelShape { layers, kv_heads, head_dim, kv_precision }) => {
            let format = kv_precision.as_deref().unwrap_or("fp16");
            let bytes = roofline::bytes_of(format).ok_or_else(|| unknown(format))?;
            Some(roofline::kv_bytes(*layers, *kv_heads, *head_dim, bytes))
        }
    };
    Ok(Weights {
        parameters: parameters.to_f64(),
        active: active_parameters.map(|active| active.to_f64()),
        bytes,
        kv_bytes,
    })
}

/// Pairs warm runs with the runs that differ from them only in the cache.
fn twins<'a>(readings: &'a [RunResult], points: &[Run<'a>]) -> Vec<Twins<'a>> {
    let key = |reading: &RunResult| {
        let mut entries = canonical(&reading.record.spec).entries().to_vec();
        entries.retain(|(path, _)| path != "scenario.cache");
        entries
    };
    let is_cold = |reading: &RunResult| reading.record.spec.scenario.cache == Cache::Cold;
    let cold: Vec<_> =
        readings.iter().zip(points).filter(|(reading, _)| is_cold(reading)).map(|(r, p)| (key(r), p)).collect();
    let warm = readings.iter().zip(points).filter(|(reading, _)| !is_cold(reading));
    let pair = |(reading, warm): (&RunResult, &Run<'a>)| {
        let own = key(reading);
        let (_, cold) = cold.iter().find(|(other, _)| *other == own)?;
        Some(Twins { warm: *warm, cold: **cold })
    };
    if cold.is_empty() { Vec::new() } else { warm.filter_map(pair).collect() }
}
