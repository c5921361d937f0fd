//! The document of `capacity --format json`. Its types define the schema (schemas/capacity.schema.json).

use schemars::JsonSchema;
use serde::Serialize;

use super::super::given_up::Entry;
use super::super::results::Readings;
use crate::analysis::capacity::{self, Fleet, Target};
use crate::analysis::curve::{Bracket, Figure, Series};
use crate::analysis::scaling::{Needed, Step};
use crate::plan::Slo;
use crate::report::{self, CapacityAnswer, Configuration, MeasuredScaling};

/// The load that each configuration sustains under the objective, and the number of instances needed for a
/// target load.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The plan's name.
    plan: String,
    /// How many of the requested runs of the plan have no result yet; given-up runs are not counted.
    missing: usize,
    /// The plan's runs that were given up, in plan order. A load with such a run is treated as missing the
    /// objective, unless the run was given up because of a 404, which shows nothing about the load.
    given_up: Vec<Entry>,
    /// Notes on endpoints whose results come from several engines, releases or served models; empty if the
    /// results of each endpoint come from one.
    mixed_servers: Vec<String>,
    /// The objective, as in the plan.
    slo: Slo,
    /// The load to be served; null without --target-qps.
    target: Option<Target>,
    /// The loads whose results are affected by errors, each described in a sentence; a failed request counts
    /// as being above every limit.
    failed: Vec<String>,
    /// The configurations, one for each curve of the plan, ordered by their first runs in the plan.
    configurations: Vec<OneConfiguration>,
    /// How capacity grows with the number of replicas behind a balancer, for each server that a sweep measured with
    /// several numbers (`hardware: { replicas }`); empty if there is none.
    scaling: Vec<OneScaling>,
}

/// How the capacity of one server grows with the number of its replicas.
#[derive(Debug, Serialize, JsonSchema)]
struct OneScaling {
    /// The sweep that measured the endpoints.
    sweep: String,
    /// The model's name in the plan.
    model: String,
    /// The scenario's name in the plan.
    scenario: String,
    /// The measured numbers of replicas, in ascending order.
    steps: Vec<Step>,
    /// The number of replicas that the target needs; null without a target.
    needed: Option<Needed>,
}

/// One configuration. Exactly one of `rejected`, `closed_loop` and `max_qps` is not null.
#[derive(Debug, Serialize, JsonSchema)]
struct OneConfiguration {
    #[serde(flatten)]
    series: Series,
    /// Whether this is the cheapest configuration among those that serve the same requests (that is, agree
    /// in model, scenario and other axes), meet the objective and have a price. They are compared by money
    /// per month at the target, or by money per token without a target. If several of them cost the same,
    /// each is the cheapest.
    cheapest: bool,
    /// Why the configuration was rejected, in a sentence; null if it was not rejected, and in closed loops.
    rejected: Option<String>,
    /// The two numbers of requests in flight between which the capacity of a closed loop lies; null in open
    /// loops.
    closed_loop: Option<Bracket>,
    /// The two rates, in arrivals per second, between which the capacity of one instance lies; null if the
    /// configuration was rejected, and in closed loops.
    max_qps: Option<Bracket>,
    /// The highest load that is shown to meet the objective at 95 %, in the unit of the configuration's loads;
    /// null if no load is.
    shown: Option<f64>,
    /// The highest load that met the objective in what was seen, whether or not this is shown; null if no load
    /// did.
    observed: Option<f64>,
    /// Figures and cost of one instance at the highest load that meets the objective; null if
    /// `max_qps` is null.
    instance: Option<Instance>,
    /// The number of instances needed for the target; null if `max_qps` is null, or without a
    /// target.
    fleet: Option<Fleet>,
}

/// Figures and cost of one instance at the highest load that meets the objective.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Instance {
    /// Requests per second that arrived, on average over the runs of this load; the number of instances is
    /// based on this rate.
    arrived_rate: f64,
    /// Upper end of the 95 % interval of the requests per second that the instance can serve, measured at
    /// loads where more requests arrived than the instance served. Null if no load saturated the instance.
    serves_at_most_requests_per_s: Option<f64>,
    /// Output tokens per second.
    output_throughput_tokens_per_s: f64,
    /// Lower end of the 95 % interval of `output_throughput_tokens_per_s`; null with one run.
    output_throughput_low: Option<f64>,
    /// Upper end of the 95 % interval of `output_throughput_tokens_per_s`; null with one run.
    output_throughput_high: Option<f64>,
    /// How the interval is computed; null with one run.
    interval: Option<&'static str>,
    /// Number of accelerators; null if the plan does not declare it.
    gpus: Option<u32>,
    /// Money per hour, in the plan's currency; null if the plan declares neither a price nor owned hardware.
    price_per_hour: Option<f64>,
    /// Power of the endpoint under load, in watts; null if the plan does not declare it.
    watts: Option<f64>,
    /// Money per million output tokens; null without a price.
    cost_per_million_output_tokens: Option<f64>,
    /// Output tokens per unit of money; null without a price.
    tokens_per_unit_of_money: Option<f64>,
    /// Output tokens per joule, based on the declared power; null without watts.
    tokens_per_joule: Option<f64>,
    /// Output tokens per joule of the GPUs, as measured by `telemetry` over all runs of the load; null if
    /// the energy of any of these runs is unknown.
    measured_tokens_per_joule: Option<f64>,
    /// The source of the energy: `counter`, the GPUs' own counter, or `power`, the integral of the power
    /// that the GPUs drew; null if `measured_tokens_per_joule` is null.
    energy_by: Option<&'static str>,
    /// Average number of output tokens per completed request; null if the output tokens were not counted.
    output_tokens_per_request: Option<f64>,
}

impl Document {
    /// Builds the document from the results that were read. The plan must have an objective.
    pub(crate) fn of(readings: &Readings, configurations: &[Configuration], target: Option<Target>) -> Document {
        let cheapest = report::cheapest(configurations, target).concat();
        let of = |(at, one): (usize, &Configuration)| OneConfiguration::of(one, cheapest.contains(&at), target);
        Document {
            plan: readings.plan.name.clone(),
            missing: readings.missing,
            given_up: readings.given_up_entries(),
            mixed_servers: readings.mixed_servers(),
            slo: readings.plan.slo.clone().unwrap_or_default(),
            target,
            failed: report::failed(configurations),
            configurations: configurations.iter().enumerate().map(of).collect(),
            scaling: report::scalings(configurations).into_iter().map(|one| OneScaling::of(one, target)).collect(),
        }
    }
}

impl OneScaling {
    fn of(MeasuredScaling { series, scaling }: MeasuredScaling, target: Option<Target>) -> OneScaling {
        OneScaling {
            sweep: series.sweep.clone(),
            model: series.model.clone(),
            scenario: series.scenario.clone(),
            needed: target.map(|target| scaling.needed(target)),
            steps: scaling.steps,
        }
    }
}

impl OneConfiguration {
    fn of(one: &Configuration, cheapest: bool, target: Option<Target>) -> OneConfiguration {
        let highest = one.curve.highest();
        let mut entry = OneConfiguration {
            series: one.curve.series.clone(),
            cheapest,
            rejected: None,
            closed_loop: None,
            max_qps: None,
            shown: highest.shown,
            observed: highest.observed,
            instance: None,
            fleet: None,
        };
        match &one.answer {
            CapacityAnswer::Rejected(why) => entry.rejected = Some(why.clone()),
            CapacityAnswer::Closed(found) => entry.closed_loop = Some(found.clone()),
            CapacityAnswer::Holds { instance, bracket, output } => {
                entry.max_qps = Some(bracket.clone());
                entry.instance = Some(Instance::of(instance, output));
                entry.fleet = target.map(|target| instance.fleet(target));
            }
        }
        entry
    }
}

impl Instance {
    /// Returns the figures of an instance; `output` is its throughput with the interval.
    pub(crate) fn of(instance: &capacity::Instance, output: &Figure) -> Instance {
        Instance {
            arrived_rate: instance.bears,
            serves_at_most_requests_per_s: instance.serves_at_most,
            output_throughput_tokens_per_s: output.value,
            output_throughput_low: output.ends.map(|ends| ends.low),
            output_throughput_high: output.ends.map(|ends| ends.high),
            interval: output.ends.map(|ends| ends.kind.name()),
            gpus: instance.gpus,
            price_per_hour: instance.price_per_hour,
            watts: instance.watts,
            cost_per_million_output_tokens: instance.per_million(),
            tokens_per_unit_of_money: instance.tokens_per_money(),
            tokens_per_joule: instance.tokens_per_joule(),
            measured_tokens_per_joule: instance.measured.map(|measured| measured.tokens),
            energy_by: instance.measured.map(|measured| measured.by.name()),
            output_tokens_per_request: instance.tokens_per_request,
        }
    }
}
