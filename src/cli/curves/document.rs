//! The document of `curves --format json`. Its types define the schema (schemas/curves.schema.json).

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::given_up::Entry;
use super::super::results::Readings;
use crate::analysis::curve::{self, Axis, Bracket, Curve, FIGURES, OnFronts, Rung, Series, alike, labels, on_fronts};
use crate::analysis::saturation;
use crate::analysis::slo::Answer;
use crate::report::Trail;

/// The curves of a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// The plan's name.
    plan: String,
    /// How many of the requested runs of the plan have no result yet; given-up runs are not counted.
    missing: usize,
    /// The plan's runs that were given up, in plan order.
    given_up: Vec<Entry>,
    /// The class of a mix. Figures, knees and fronts cover only the requests of this class; null if they
    /// cover all requests. Saturation and the objective always cover all requests.
    class: Option<String>,
    /// Notes on endpoints whose results come from several engines, releases or served models; empty if the
    /// results of each endpoint come from one.
    mixed_servers: Vec<String>,
    /// The curves, ordered by their first run in the plan.
    curves: Vec<OneCurve>,
    /// The decisions of the searches and ladders that requested some of the runs in `curves`.
    choices: Vec<Trail>,
}

/// Runs that differ only in their load.
#[derive(Debug, Serialize, JsonSchema)]
struct OneCurve {
    #[serde(flatten)]
    series: Series,
    /// The number of the group of curves that serve the same requests, from 0. Curves of one group share Pareto fronts
    /// and, if they are of the same sweep and kind of load, figures.
    group: usize,
    /// What distinguishes the curve from the others of its group: the endpoint, or the values of the server's flags that
    /// vary, like server.slots=8.
    label: String,
    /// The unit of the curve's load: qps (arrivals per second of an open loop) or batch_size (requests in
    /// flight).
    load: &'static str,
    /// The loads of the curve, in ascending order.
    rungs: Vec<OneRung>,
    /// Where the curve bends.
    knee: Knee,
    /// The two loads between which arrivals begin to outrun the server.
    saturation: Saturation,
    /// The two loads between which the curve stops meeting the plan's objective; null if there is no
    /// objective, or if no run counts.
    slo: Option<Bracket>,
    /// The highest load that is shown to meet the plan's objective at 95 %; null if no load is. For the loads of
    /// a search, this is its result for the latency limits.
    shown: Option<f64>,
    /// The highest load that met the plan's objective in what was seen, whether or not this is shown; null if no
    /// load did. For the loads of a search, this is its result for the latency limits.
    observed: Option<f64>,
}

/// The repeats of one load.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OneRung {
    /// The load, in the unit of the curve's `load`.
    load: f64,
    /// Requests per second that actually arrived, on average over `runs`; null in closed loops, or if `runs`
    /// is empty.
    arrived_rate: Option<f64>,
    /// Full ids of the runs that count, that is, on which the figures of this load are based.
    runs: Vec<String>,
    /// Full ids of invalid runs, which are excluded from the figures.
    left_out: Vec<String>,
    /// Repeats that are excluded because of a disturbance that did not affect most repeats of the load.
    excluded: Vec<OneExcluded>,
    /// Full ids of runs that were given up; these have no figures.
    given_up: Vec<String>,
    /// Why runs of this load were given up, like `429 (3 of 3)`; null if none was given up. If `runs` is
    /// empty, this is why all `figures` are null.
    given_up_reason: Option<String>,
    /// Whether the server is saturated: more requests arrived than were served.
    saturated: bool,
    /// kept_up, saturated or not_shown: whether the server kept up with the arrivals, over `runs`. Only
    /// loads at which it kept up count for knee, fronts and capacity. Null in closed loops, or if
    /// `runs` is empty.
    saturation: Option<&'static str>,
    /// Length of a window, in seconds, that would be enough to show whether the server keeps up, at the
    /// pace of these runs; null unless `saturation` is not_shown.
    saturation_would_do_s: Option<f64>,
    /// holds, misses or undecided: the outcome of the plan's objective over the runs of this load; null if
    /// there is no objective, or if no run counts. A load misses if the server failed so many requests that
    /// a run is invalid, or if a run was given up, except after a 404, which shows nothing about the load.
    slo: Option<&'static str>,
    /// holds or misses: the outcome of the plan's objective in what was seen at this load, whether or not it is
    /// shown; null if there is no objective, or if nothing was seen.
    observed: Option<&'static str>,
    /// The limits of the objective, each decided over `runs`; empty if `runs` is empty, or if the plan
    /// limits no latency.
    limits: Vec<OneLimit>,
    /// The figures of this load by name, with the unit at the end of each name. A figure is null if the
    /// runs do not provide it.
    #[schemars(schema_with = "figures")]
    figures: IndexMap<String, Option<Figure>>,
    /// Lower bounds of percentiles that fall among failed requests in at least one run, by their names
    /// in `figures`, where these percentiles are null.
    at_least: IndexMap<String, f64>,
    /// Output tokens per joule of the GPUs, over the windows of `runs`; null if the energy of any of these
    /// runs is unknown, or if it was measured in different ways.
    tokens_per_joule: Option<f64>,
    /// The source of the energy: counter, or power (the integral of the power); null if `tokens_per_joule`
    /// is null.
    energy_by: Option<&'static str>,
    /// The fronts on which this rung lies: no other rung that serves the same requests is as good in both
    /// figures of the front and better in one of them.
    pareto: Pareto,
}

/// A repeat that is excluded from the figures of its load.
#[derive(Debug, Serialize, JsonSchema)]
struct OneExcluded {
    /// Full id of the run.
    run: String,
    /// The reason for the run's verdict: paused or errors_bunched.
    reason: &'static str,
}

/// One limit of the objective, tested over the runs of a load.
#[derive(Debug, Serialize, JsonSchema)]
struct OneLimit {
    /// Key of the metric that was tested; open loops use `…_from_schedule`.
    metric: &'static str,
    /// The percentile to which the limit applies.
    percentile: &'static str,
    /// The limit, in milliseconds.
    limit_ms: f64,
    /// Number of requests above the limit in all runs, including failures; for itl, number of gaps.
    above: u64,
    /// Number of requests with this metric in all runs, including failures; for itl, number of
    /// gaps.
    n: u64,
    /// The equivalent number of independent requests. It is lower than the actual number if slow requests
    /// cluster, or if runs differ.
    worth: f64,
    /// The result: holds, misses or undecided.
    answer: &'static str,
    /// Length of a window, in seconds, that would be enough to decide with the same number of runs if the
    /// share above the limit stayed the same; null if the outcome is decided, or if the share is too close
    /// to the allowed one.
    would_do_s: Option<f64>,
}

/// One figure of a rung: the value of a single run, or the mean of several (geometric for times, rates and money).
#[derive(Debug, Serialize, JsonSchema)]
struct Figure {
    /// The value, in the unit at the end of the figure's name.
    value: f64,
    /// Lower end of the 95 % interval, in the same unit; null if no interval is available.
    low: Option<f64>,
    /// Upper end of the 95 % interval, in the same unit; null if no interval is available.
    high: Option<f64>,
    /// How the interval is computed, like `order statistics of requests` (within one run) or `t over runs,
    /// log scale`; null if there is no interval.
    interval: Option<&'static str>,
    /// Whether a percentile is based on few samples in one of the runs: fewer than 1 000 for p99, fewer
    /// than 100 000 for p99.9.
    few_samples: bool,
}

/// Whether a rung lies on each of the fronts that docs/CAPACITY.md describes.
#[derive(Debug, Serialize, JsonSchema)]
struct Pareto {
    /// Whether the rung lies on the front of output tokens per second per user against output tokens per
    /// second per accelerator.
    user_over_gpu: bool,
    /// Whether the rung lies on the front of output throughput against p99 of E2E latency.
    throughput_over_p99: bool,
    /// Whether the rung lies on the front of cost per million output tokens against the first latency that
    /// the objective limits or, without an objective, against p50 of TPOT. Null if the load lacks one of the
    /// two figures or was given up, or if the server was not shown to keep up with it.
    cost_over_latency: Option<bool>,
}

/// Where a curve bends; `method` names the rule.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "found", rename_all = "snake_case")]
enum Knee {
    /// A knee was found.
    At {
        /// The load at the knee.
        load: f64,
        /// The two neighboring loads of the ladder.
        between: [f64; 2],
        /// Lower end of the interval of the knee; null if it may lie below the measured loads.
        low: Option<f64>,
        /// Upper end of the interval of the knee; null if it may lie above the measured loads.
        high: Option<f64>,
        /// How the interval is computed: t over repeats (95 %), or the neighboring loads if a load has one run.
        interval: &'static str,
        /// The rule that determines the knee.
        method: &'static str,
    },
    /// The curve falls from the lightest load on.
    AtOrBelow {
        /// The lightest load.
        load: f64,
        /// The rule that determines the knee.
        method: &'static str,
    },
    /// The curve still rises at its heaviest load.
    NotReached {
        /// The share by which throughput rose from the second-heaviest load to the heaviest: 0.1 for a tenth.
        rise: f64,
        /// The rule that determines the knee.
        method: &'static str,
    },
    /// The bounds for few and for many requests in flight meet above the heaviest load, where nothing was measured.
    AboveMeasured {
        /// The load at which the two bounds meet, in requests in flight.
        meet: f64,
        /// The heaviest load.
        heaviest: f64,
        /// The rule that determines the knee.
        method: &'static str,
    },
    /// Fewer than three loads have the required figures.
    TooFewLoads {
        /// Number of loads that have the required figures.
        loads: usize,
        /// The rule that determines the knee.
        method: &'static str,
    },
}

/// The two loads between which arrivals begin to outrun the server.
#[derive(Debug, Serialize, JsonSchema)]
struct Saturation {
    /// The highest load that the server was shown to keep up with, below the first that saturated or was
    /// given up; null if there is none. In closed loops, which never saturate, the highest load that was
    /// not given up.
    kept_up: Option<f64>,
    /// The lowest load that saturated or was given up; null if there is none. Closed loops never
    /// saturate.
    saturated: Option<f64>,
    /// Loads whose windows are too short to decide, in ascending order; empty in closed loops.
    not_shown: Vec<f64>,
}

/// Returns the schema of the figures as properties, each with its description.
fn figures(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<Option<Figure>>();
    let property = |reading: &curve::Ordinate| {
        let mut property = one.clone();
        let (closed, open) = (reading.metric(false), reading.metric(true));
        let percentile = reading.percentile.map_or(String::new(), |percentile| format!("{} of ", percentile.name()));
        let text = match closed.key == open.key {
            true => format!("{percentile}{}: {}.", closed.title, closed.definition),
            false => format!("{percentile}{} in closed loops, {} in open ones.", closed.title, open.title),
        };
        property.insert("description".to_owned(), text.into());
        (figure_name(reading), property.to_value())
    };
    let properties: Map<String, Value> = FIGURES.iter().map(property).collect();
    let names: Vec<String> = properties.keys().cloned().collect();
    schemars::json_schema!({
        "type": "object", "properties": properties, "required": names, "additionalProperties": false,
    })
}

/// Returns the name of a figure with its unit at the end. The unit is the same in open and closed loops.
fn figure_name(reading: &curve::Ordinate) -> String {
    format!("{}{}", reading.name, reading.metric(true).unit.suffix())
}

impl Document {
    /// Builds the document from the results that were read.
    pub(crate) fn of(readings: &Readings, curves: &[Curve], class: Option<&str>) -> Document {
        let fronts = on_fronts(curves, readings.plan.slo.as_ref());
        let names = names(curves);
        let curves = curves.iter().zip(names).zip(&fronts).map(|((curve, name), on)| OneCurve::of(curve, name, on));
        let curves = curves.collect();
        Document {
            plan: readings.plan.name.clone(),
            missing: readings.missing,
            given_up: readings.given_up_entries(),
            class: class.map(str::to_owned),
            mixed_servers: readings.mixed_servers(),
            curves,
            choices: readings.trails.clone(),
        }
    }
}

/// The group of a curve, and its label in the group.
struct Name {
    group: usize,
    label: String,
}

/// Returns the name of each curve.
fn names(curves: &[Curve]) -> Vec<Name> {
    let mut names: Vec<(usize, Name)> = Vec::new();
    for (group, members) in alike(curves, |curve| &curve.series).into_iter().enumerate() {
        let series: Vec<&Series> = members.iter().map(|at| &curves[*at].series).collect();
        let of = |(at, label)| (at, Name { group, label });
        names.extend(members.iter().copied().zip(labels(&series)).map(of));
    }
    names.sort_by_key(|(at, _)| *at);
    names.into_iter().map(|(_, name)| name).collect()
}

impl OneCurve {
    fn of(curve: &Curve, name: Name, on: &[OnFronts]) -> OneCurve {
        let (kept_up, saturated) = curve.saturation();
        let highest = curve.highest();
        OneCurve {
            series: curve.series.clone(),
            group: name.group,
            label: name.label,
            load: curve.axis.name(),
            rungs: curve.rungs.iter().zip(on).map(|(rung, on)| OneRung::of(rung, *on)).collect(),
            knee: Knee::of(&curve.knee(), curve.axis),
            saturation: Saturation { kept_up, saturated, not_shown: curve.not_shown().map(|rung| rung.load).collect() },
            slo: curve.bracket(),
            shown: highest.shown,
            observed: highest.observed,
        }
    }
}

impl OneRung {
    /// Returns a rung with the fronts on which it lies.
    pub(crate) fn of(rung: &Rung, on: OnFronts) -> OneRung {
        let ids = |runs: &[curve::Run]| -> Vec<String> { runs.iter().map(|run| run.labels.run_id.clone()).collect() };
        let is_short = rung.state() == Some(saturation::State::NotShown);
        OneRung {
            load: rung.load,
            arrived_rate: rung.arrived_rate(),
            runs: ids(&rung.runs),
            left_out: ids(&rung.left_out),
            excluded: rung.excluded.iter().map(OneExcluded::of).collect(),
            given_up: rung.given_up.iter().map(|run| run.labels.run_id.clone()).collect(),
            given_up_reason: rung.why_given_up(),
            saturated: rung.is_saturated(),
            saturation: rung.state().map(|state| state.name()),
            saturation_would_do_s: is_short.then(|| rung.window_to_keep_up()).flatten(),
            slo: rung.answer().map(|answer| answer.name()),
            observed: rung.seen().met.map(|met| Answer::observed(met).name()),
            limits: rung.limits().iter().map(OneLimit::of).collect(),
            figures: FIGURES.iter().map(|one| (figure_name(one), rung.figure(one).map(Figure::from))).collect(),
            at_least: FIGURES.iter().filter_map(|one| Some((figure_name(one), rung.at_least(one)?))).collect(),
            tokens_per_joule: rung.tokens_per_joule().map(|energy| energy.tokens),
            energy_by: rung.tokens_per_joule().map(|energy| energy.by.name()),
            pareto: Pareto {
                user_over_gpu: on.user_over_gpu == Some(true),
                throughput_over_p99: on.throughput_over_p99 == Some(true),
                cost_over_latency: on.cost_over_latency,
            },
        }
    }
}

impl OneExcluded {
    fn of(excluded: &curve::Excluded) -> OneExcluded {
        OneExcluded { run: excluded.run.labels.run_id.clone(), reason: excluded.reason }
    }
}

impl OneLimit {
    fn of(limit: &curve::Limit) -> OneLimit {
        OneLimit {
            metric: limit.metric,
            percentile: limit.percentile.name(),
            limit_ms: limit.limit.millis(),
            above: limit.evidence.above,
            n: limit.evidence.n,
            worth: limit.evidence.worth.requests,
            answer: limit.answer.name(),
            would_do_s: limit.would_do,
        }
    }
}

impl From<curve::Figure> for Figure {
    fn from(curve::Figure { value, ends, few_samples, .. }: curve::Figure) -> Figure {
        let [low, high] = [ends.map(|ends| ends.low), ends.map(|ends| ends.high)];
        Figure { value, low, high, interval: ends.map(|ends| ends.kind.name()), few_samples }
    }
}

impl Knee {
    fn of(knee: &curve::Knee, axis: Axis) -> Knee {
        let method = match axis {
            Axis::Qps => "highest throughput / latency",
            Axis::BatchSize => "where the asymptotes for few and for many requests in flight cross",
        };
        match *knee {
            curve::Knee::At { load, between: (below, above), range } => Knee::At {
                load,
                between: [below, above],
                low: range.low,
                high: range.high,
                interval: range.basis.name(),
                method,
            },
            curve::Knee::Before(load) => Knee::AtOrBelow { load, method },
            curve::Knee::NotReached { rise, .. } => Knee::NotReached { rise, method },
            curve::Knee::Beyond { meet, heaviest } => Knee::AboveMeasured { meet, heaviest, method },
            curve::Knee::TooFew(loads) => Knee::TooFewLoads { loads, method },
        }
    }
}
