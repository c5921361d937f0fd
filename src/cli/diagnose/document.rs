//! The document of `diagnose --format json`. Its types define the schema (schemas/diagnose.schema.json).

use schemars::JsonSchema;
use serde::Serialize;

use super::super::given_up::Entry;
use super::super::results::Readings;
use crate::analysis::diagnosis::{Diagnosis, Evidence, Finding, Predicted, memory_busy};
use crate::report::{Bound, SaturatedLoad};

/// Decode speed compared with the bound set by memory bandwidth, and symptoms.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The plan's name.
    plan: String,
    /// How many of the requested runs of the plan have no result yet; given-up runs are not counted.
    missing: usize,
    /// The plan's runs that were given up, in plan order. They are not examined.
    given_up: Vec<Entry>,
    /// Notes on endpoints whose results come from several engines, releases or served models; empty if the
    /// results of each endpoint come from one.
    mixed_servers: Vec<String>,
    /// The loads at which the server was saturated; empty if there are none.
    saturated: Vec<Evidence>,
    /// The runs for which the plan declares enough to compute the bound, each compared with its bound.
    predictions: Vec<Prediction>,
    /// The reasons why other runs have no bound, each listed once.
    not_predicted: Vec<String>,
    /// Every symptom, found or not.
    symptoms: Vec<OneDiagnosis>,
    /// Server figures that are missing in all runs, and how to measure them.
    not_measured: String,
}

/// A run compared with the bound set by memory bandwidth alone.
#[derive(Debug, Serialize, JsonSchema)]
struct Prediction {
    /// The run's full id.
    run: String,
    /// Name of the endpoint in the plan.
    endpoint: String,
    /// Name of the scenario in the plan.
    scenario: String,
    /// Average number of requests in flight in the window; null if the window is empty.
    in_flight: Option<f64>,
    /// Average number of tokens in a request's context halfway through its output; null if no request
    /// completed.
    context_tokens: Option<f64>,
    /// Decode tokens per second of one stream: 1 / p50 TPOT. Null if TPOT is null.
    measured_tokens_per_s: Option<f64>,
    /// Upper bound of decode tokens per second of one stream if only the weights are read.
    by_weights_tokens_per_s: f64,
    /// Upper bound of decode tokens per second of one stream if the weights and the KV cache of all
    /// streams are read; null if the model has no `shape`, or if the context is unknown.
    with_kv_tokens_per_s: Option<f64>,
    /// `measured_tokens_per_s` divided by the lower of the two bounds; 1 is the most that memory bandwidth
    /// allows. Null if `measured_tokens_per_s` is null.
    measured_over_predicted: Option<f64>,
    /// Share of the window in which the GPU's memory moved data, by the GPU's own counter; null if
    /// `telemetry` does not provide it.
    memory_busy_share: Option<f64>,
}

/// A symptom, and whether it was found.
#[derive(Debug, Serialize, JsonSchema)]
struct OneDiagnosis {
    /// The name of the symptom, like ttft_tail_spikes.
    symptom: &'static str,
    /// A description of what is observed.
    title: &'static str,
    /// seen, not_seen, or not_checked if the required data was not measured.
    found: &'static str,
    /// Where the symptom is seen; empty if it is not seen.
    evidence: Vec<Evidence>,
    /// Why the symptom is not seen, or what is missing to check for it; null if it is seen.
    why: Option<String>,
    /// The likely cause of the symptom.
    likely: &'static str,
    /// Evidence that would confirm the cause.
    confirm_with: &'static str,
    /// Evidence that would refute the cause.
    refuted_by: &'static str,
    /// What to try first.
    try_first: &'static str,
}

impl Document {
    /// Builds the document from the results that were read.
    pub(crate) fn of(
        readings: &Readings,
        bound: &Bound,
        saturated: &[SaturatedLoad],
        diagnoses: &[Diagnosis],
        not_measured: String,
    ) -> Document {
        let evidence = |one: &SaturatedLoad| Evidence { runs: one.runs.clone(), text: one.text.clone() };
        Document {
            plan: readings.plan.name.clone(),
            missing: readings.missing,
            given_up: readings.given_up_entries(),
            mixed_servers: readings.mixed_servers(),
            saturated: saturated.iter().map(evidence).collect(),
            predictions: bound.predicted.iter().map(Prediction::of).collect(),
            not_predicted: bound.unpredicted.to_vec(),
            symptoms: diagnoses.iter().map(OneDiagnosis::of).collect(),
            not_measured,
        }
    }
}

impl Prediction {
    fn of(one: &Predicted) -> Prediction {
        let labels = one.run.labels;
        Prediction {
            run: labels.run_id.clone(),
            endpoint: labels.endpoint.clone(),
            scenario: labels.scenario.clone(),
            in_flight: one.run.metrics.flow.achieved_concurrency,
            context_tokens: one.run.tokens.context(),
            measured_tokens_per_s: one.measured(),
            by_weights_tokens_per_s: one.prediction.by_weights,
            with_kv_tokens_per_s: one.prediction.with_kv,
            measured_over_predicted: one.ratio(),
            memory_busy_share: memory_busy(&one.run),
        }
    }
}

impl OneDiagnosis {
    fn of(Diagnosis { symptom, finding }: &Diagnosis) -> OneDiagnosis {
        let (found, evidence, why) = match finding {
            Finding::Seen(places) => ("seen", places.clone(), None),
            Finding::NotSeen(why) => ("not_seen", Vec::new(), Some(why.clone())),
            Finding::NotChecked(why) => ("not_checked", Vec::new(), Some(why.clone())),
        };
        OneDiagnosis {
            symptom: symptom.key,
            title: symptom.title,
            found,
            evidence,
            why,
            likely: symptom.regime,
            confirm_with: symptom.confirm,
            refuted_by: symptom.refute,
            try_first: symptom.response,
        }
    }
}
