//! The view of a plan that rules use: for every sweep, the values on its axes, its rungs and its phases, but
//! no cells. Even the longest axes are only lists, so the work here is linear in the length of the plan.

use crate::expand::resolve::{load_engine, phases};
use crate::expand::{Course, Load, LoadEngine, Phases};
use crate::plan::model::content::{Resolved, Reuse, resolve};
use crate::plan::model::lengths::{Preset, WrittenLengths};
use crate::plan::{
    Arrivals, Compare, Connections, Endpoint, Engine, Model, NonceMode, Plan, Process, ResolvedPlan, Scalar, Scenario,
    Sessions, Step, Sweep,
};
use crate::protocol::Task;
use crate::units::{Decimal, Nanos};

use super::calibrated::Calibrated;
use super::finding::{Finding, Scope};

/// Builds a path into the plan from names and indices.
macro_rules! steps {
    ($($step:expr),* $(,)?) => { vec![$($crate::plan::Step::from($step)),*] };
}
pub(super) use steps;

/// A plan and the calibration of the host.
pub(crate) struct View<'p> {
    /// The plan.
    pub plan: &'p ResolvedPlan,
    /// The last calibration; `None` if no calibration applies to this host.
    pub calibrated: Option<&'p Calibrated>,
    /// The sweeps of the plan.
    pub sweeps: Vec<SweepView<'p>>,
}

/// One load point of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rung {
    /// The load of the runs.
    pub load: Load,
    /// The phases of the load point's runs.
    pub phases: Phases,
    /// The place of the load's value in the plan.
    pub at: Vec<Step>,
    /// Speed factor of a replayed trace, if a trace determines the load.
    pub speed: Option<Decimal>,
}

impl Rung {
    /// The load as written in a plan: `qps: 5`.
    pub(super) fn written(&self) -> String {
        if let Some(speed) = self.speed {
            return format!("trace at speed {speed}");
        }
        match &self.load {
            Load::Closed { batch_size } => format!("batch_size: {batch_size}"),
            Load::Open { qps, arrivals, .. } => match &arrivals.profile {
                None => format!("qps: {qps}"),
                Some(profile) if profile.own_rate().is_some() => format!("arrivals: {}", profile.label()),
                Some(profile) => format!("qps: {qps}, {}", profile.label()),
            },
        }
    }

    /// The rate profile of an open loop; `None` for a closed loop.
    pub(crate) fn course(&self) -> Option<Course> {
        Course::new(&self.load, &self.phases)
    }
}

/// A sweep, with the values that rules use.
pub(crate) struct SweepView<'p> {
    /// The name of the sweep.
    pub name: &'p str,
    /// The sweep as declared in the plan.
    pub sweep: &'p Sweep,
    /// The endpoints of the sweep, by name.
    pub endpoints: Vec<(&'p str, &'p Endpoint)>,
    /// The models of the sweep, by name.
    pub models: Vec<(&'p str, &'p Model)>,
    /// The scenarios of the sweep, by name, with the plan's fields applied but not the axes.
    pub scenarios: Vec<(String, Resolved)>,
    /// The load points of the sweep.
    pub rungs: Vec<Rung>,
    /// The configuration of the sweep's load generator.
    pub engine: LoadEngine,
    /// Whether the sweep has cells in which each request opens a new connection.
    pub(crate) opens_connections: bool,
    /// Whether all responses of the sweep are streamed and have the requested length, as far as the plan
    /// determines this.
    pub streams: bool,
    /// The comparison of the sweep; `None` if the sweep compares nothing.
    pub compare: Option<&'p Compare>,
}

impl<'p> View<'p> {
    /// Creates the view of a plan.
    pub(super) fn new(plan: &'p ResolvedPlan, calibrated: Option<&'p Calibrated>) -> View<'p> {
        let sweeps = plan.sweeps.iter().map(|(name, sweep)| SweepView::new(plan, name, sweep)).collect();
        View { plan, calibrated, sweeps }
    }

    /// The endpoints, other than mocks, that at least one sweep measures, in the order of the plan.
    pub(crate) fn real_endpoints(&self) -> Vec<(&'p str, &'p Endpoint)> {
        let used: std::collections::HashSet<&str> =
            self.sweeps.iter().flat_map(|sweep| sweep.endpoints.iter().map(|(name, _)| *name)).collect();
        let real = |(name, endpoint): &(&str, &Endpoint)| endpoint.engine != Engine::Mock && used.contains(name);
        self.plan.endpoints.iter().map(|(name, endpoint)| (name.as_str(), endpoint)).filter(real).collect()
    }
}

impl<'p> SweepView<'p> {
    fn new(plan: &'p Plan, name: &'p str, sweep: &'p Sweep) -> SweepView<'p> {
        let entries = |axis: &str| sweep.values(axis).into_iter().map(|value| value.to_string());
        let endpoints = entries("endpoint").filter_map(|name| plan.endpoints.get_key_value(&name));
        let models = entries("model").filter_map(|name| plan.models.get_key_value(&name));
        let endpoints: Vec<(&str, &Endpoint)> = endpoints.map(|(name, endpoint)| (name.as_str(), endpoint)).collect();
        // If all endpoints have the same task, the scenarios describe the requests of this task.
        let mut tasks = endpoints.iter().map(|(_, endpoint)| endpoint.api.protocol().task());
        let task = tasks.next().filter(|first| tasks.all(|task| task == *first)).unwrap_or(Task::Generate);
        let scenarios = entries("scenario").filter_map(|name| {
            let mut resolved = resolve(&name, &plan.scenarios)?;
            resolved.fit(task);
            Some((name, resolved))
        });
        let per_request = Connections::PerRequest;
        let said = sweep.connections.unwrap_or(plan.connections) == per_request;
        // A sweep that measures server starts sends no load, so rules about requests do not apply.
        let is_load = !sweep.measures_start();
        let scenarios: Vec<(String, Resolved)> = scenarios.filter(|_| is_load).collect();
        let cut = |(_, one): &(String, Resolved)| one.stream == Some(false) || one.ignore_eos == Some(false);
        let is_false = |axis: &str| sweep.values(axis).contains(&Scalar::Bool(false));
        SweepView {
            name,
            sweep,
            endpoints,
            models: models.map(|(name, model)| (name.as_str(), model)).collect(),
            streams: sweep.stream.unwrap_or(plan.stream)
                && !scenarios.iter().any(cut)
                && !is_false("stream")
                && !is_false("ignore_eos"),
            scenarios,
            rungs: if is_load { rungs(plan, name, sweep) } else { Vec::new() },
            engine: load_engine(plan, sweep),
            opens_connections: said || entries("connections").any(|value| value == per_request.name()),
            compare: plan.compared(sweep),
        }
    }

    /// Creates a finding about this sweep.
    pub(super) fn finding(&self, at: Vec<Step>, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let scope = Scope::Sweep(self.name.to_owned());
        Finding { scope, at, message: message.into(), remedy: remedy.into(), undisclosed: Vec::new() }
    }

    /// The values on an axis, in written order; empty if the sweep does not have the axis.
    pub(super) fn values(&self, axis: &str) -> Vec<Scalar> {
        self.sweep.values(axis)
    }

    /// The smallest and the largest number of tokens in a field of the requests; an axis takes precedence
    /// over the scenarios.
    pub(super) fn tokens(&self, axis: &str, of: impl Fn(&Resolved) -> u32) -> (u32, u32) {
        self.extent(axis, || self.with_presets().iter().map(of).collect())
    }

    /// The smallest and the largest number of tokens, with the classes of a mix considered separately,
    /// because the requests of a mix have the lengths of all its classes.
    pub(crate) fn tokens_of_classes(&self, axis: &str, of: impl Fn(&Resolved) -> u32) -> (u32, u32) {
        self.extent(axis, || self.with_presets().iter().flat_map(Resolved::classes).map(of).collect())
    }

    /// The smallest and the largest value on an axis, or in `said` if the sweep does not have the axis.
    fn extent(&self, axis: &str, said: impl FnOnce() -> Vec<u32>) -> (u32, u32) {
        let on_axis: Vec<u32> = self.values(axis).iter().filter_map(whole).collect();
        let found = if on_axis.is_empty() { said() } else { on_axis };
        (found.iter().copied().min().unwrap_or(0), found.iter().copied().max().unwrap_or(0))
    }

    /// The minimum and maximum number of requests per arrival of an open loop.
    pub(crate) fn requests_per_arrival(&self) -> (u32, u32) {
        let open = |name: &Scalar| *name == Scalar::Text(Sessions::Open.name().to_owned());
        let on_axis = self.values("sessions");
        let by_themselves = |one: &Resolved| one.opens_sessions || one.content.talk.sessions == Sessions::Open;
        let arrive =
            on_axis.iter().any(open) || on_axis.is_empty() && self.scenarios.iter().any(|(_, one)| by_themselves(one));
        let per_arrival = |one: &Resolved| match on_axis.is_empty() && by_themselves(one) {
            true => one.content.mean_turns().round() as u32,
            false => one.content.requests_per_arrival().round() as u32,
        };
        if arrive { self.tokens("turns", per_arrival) } else { (1, 1) }
    }

    /// Longest think time of a user after a response, in seconds: on the axis, or else in the sweep's
    /// scenarios.
    pub(crate) fn think_secs(&self) -> f64 {
        let think = |(_, one): &(String, Resolved)| one.content.talk.think.map(|think| think.mean().secs());
        let on_axis = self.values("think");
        let times = on_axis.iter().filter_map(|time| Some(time.to_string().parse::<Nanos>().ok()?.secs()));
        let said = self.scenarios.iter().filter_map(think).fold(0.0, f64::max);
        if on_axis.is_empty() { said } else { times.fold(0.0, f64::max) }
    }

    /// The scenarios, each combined with every preset on the `lengths` axis.
    fn with_presets(&self) -> Vec<Resolved> {
        let presets: Vec<Scenario> = self.values("lengths").iter().filter_map(preset).collect();
        let scenarios = self.scenarios.iter().map(|(_, scenario)| scenario.clone());
        if presets.is_empty() {
            return scenarios.collect();
        }
        let with = |scenario: Resolved| {
            presets.iter().map(move |preset| {
                let mut scenario = scenario.clone();
                scenario.apply(preset);
                scenario
            })
        };
        scenarios.flat_map(with).collect()
    }

    /// Whether there is a cell whose requests differ in length.
    pub(crate) fn varies_lengths(&self) -> bool {
        self.with_presets()
            .iter()
            .flat_map(Resolved::classes)
            .map(|class| &class.content)
            .any(|content| content.lengths.is_some() || content.trace.is_some() || content.data.is_some())
    }

    /// The endpoints other than mocks.
    pub(crate) fn real_endpoints(&self) -> impl Iterator<Item = &(&'p str, &'p Endpoint)> {
        self.endpoints.iter().filter(|(_, endpoint)| endpoint.engine != Engine::Mock)
    }

    /// The path of this sweep.
    pub(super) fn path(&self) -> Vec<Step> {
        steps!["sweeps", self.name]
    }

    /// The place where a phase is set: in the sweep or else in the plan. If it is not set, the place of the
    /// sweep.
    pub(crate) fn phase_path(&self, plan: &Plan, phase: &str) -> Vec<Step> {
        let given = |phases: &crate::plan::PhasesPatch| match phase {
            "measure" => phases.measure.is_some(),
            "fill" => phases.fill.is_some(),
            _ => phases.stabilize.is_some(),
        };
        match (given(&self.sweep.phases), given(&plan.phases)) {
            (true, _) => steps!["sweeps", self.name, "phases", phase],
            (false, true) => steps!["phases", phase],
            (false, false) => self.path(),
        }
    }

    /// Names of the scenarios whose requests share no text, and of the scenarios whose requests share
    /// some text. Scenarios that send recorded prompts without a nonce for every prompt are in neither
    /// list, because the text that they share depends on the records.
    pub(crate) fn by_reuse(&self, plan: &Plan) -> (Vec<&str>, Vec<&str>) {
        let is_as_recorded = |class: &Resolved| {
            let is_recorded = class.content.data.is_some() || class.content.trace.is_some();
            is_recorded && [NonceMode::Run, NonceMode::Off].iter().any(|mode| self.has_nonce(plan, class, *mode))
        };
        let known = || self.scenarios.iter().filter(|(_, scenario)| !scenario.classes().any(is_as_recorded));
        let named = |alone: bool| {
            let wanted = known().filter(|(_, scenario)| (scenario.content.reuse == Reuse::None) == alone);
            wanted.map(|(name, _)| name.as_str()).collect()
        };
        (named(true), named(false))
    }

    /// Whether requests of a scenario, or of a class of a mix, have this nonce mode in any cell. The nonce
    /// mode is set on the axis, or else in the scenario, or else in the plan.
    pub(crate) fn has_nonce(&self, plan: &Plan, class: &Resolved, mode: NonceMode) -> bool {
        let on_axis = self.values("nonce");
        match on_axis.is_empty() {
            true => class.nonce.unwrap_or(plan.nonce) == mode,
            false => on_axis.contains(&Scalar::Text(mode.name().to_owned())),
        }
    }
}

/// The load points of a sweep. A rate profile in requests per second is exactly one load point. `qps`
/// together with `batch_size` is an open loop whose cap does not change the rate.
fn rungs(plan: &Plan, name: &str, sweep: &Sweep) -> Vec<Rung> {
    let rung = |load: Load, place: &[Step], speed: Option<Decimal>| {
        let phases = phases(&plan.phases, &sweep.phases, &load).ok()?;
        Some(Rung { load, phases, at: [&steps!["sweeps", name][..], place].concat(), speed })
    };
    let open = |qps: Decimal, arrivals: Arrivals| Load::Open { qps, arrivals, cap: None };
    let scenarios = || {
        let written = sweep.written("scenario").into_iter();
        written.filter_map(|(name, place)| Some((resolve(&name.to_string(), &plan.scenarios)?, place)))
    };
    let replayed = |(scenario, place): (Resolved, Vec<Step>)| {
        let trace = scenario.content.trace?;
        rung(open(trace.qps(), Process::Trace.into()), &place, Some(trace.speed))
    };
    let traces: Vec<Rung> = scenarios().filter_map(replayed).collect();
    if !traces.is_empty() {
        return traces;
    }
    if let Some(qps) = sweep.own_rate() {
        return rung(open(qps, sweep.spacing()), &["arrivals".into()], None).into_iter().collect();
    }
    let (rates, sizes) = (sweep.written("qps"), sweep.written("batch_size"));
    let by_rate = |(rate, place): &(Scalar, Vec<Step>)| rung(open(number(rate)?, sweep.spacing()), place, None);
    let by_size = |(size, place): &(Scalar, Vec<Step>)| rung(Load::Closed { batch_size: whole(size)? }, place, None);
    // If the sweep has neither a `qps` nor a `batch_size` axis, the arrivals recorded in its scenarios
    // determine the rate.
    let recorded = |(scenario, place): (Resolved, Vec<Step>)| {
        let recorded = scenario.arrivals?;
        let arrivals = sweep.arrivals.clone().unwrap_or_else(|| recorded.arrivals.clone());
        rung(open(recorded.qps, arrivals), &place, None)
    };
    match (rates.is_empty(), sizes.is_empty()) {
        (false, _) => rates.iter().filter_map(by_rate).collect(),
        (true, false) => sizes.iter().filter_map(by_size).collect(),
        (true, true) => scenarios().filter_map(recorded).collect(),
    }
}

fn number(value: &Scalar) -> Option<Decimal> {
    match value {
        Scalar::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns the scenario fields that a value of the `lengths` axis sets.
fn preset(value: &Scalar) -> Option<Scenario> {
    let Scalar::Text(name) = value else { return None };
    let lengths = WrittenLengths { preset: Some(Preset::of_name(name)?), ..WrittenLengths::default() };
    Some(Scenario { lengths: Some(lengths), ..Scenario::default() })
}

fn whole(value: &Scalar) -> Option<u32> {
    number(value)?.to_string().parse().ok()
}
