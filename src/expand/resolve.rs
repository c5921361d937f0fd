//! Resolves a cell and a repeat to a RunSpec in which every value is explicit.
//!
//! The setting nearest to the cell takes precedence: axis, then scenario, then sweep, then plan, then
//! the built-in value.

use std::collections::HashMap;
use std::sync::Arc;

use crate::plan::model::axis;
use crate::plan::model::content::{Content, Member, Resolved, SCENARIO, resolve as resolve_scenario};
use crate::plan::model::extra;
use crate::plan::model::phases::{DrainMode, FILL, MEASURE, STABILIZE};
use crate::plan::{
    Arrivals, Cache, Drain, Endpoint, Engine, ErrorPolicy, Measure, NonceMode, PhasesPatch, Plan, Process, Sessions,
    Sweep, Table, Workers,
};
use crate::units::{Decimal, Nanos};

use super::axes::{arrivals, connections, number, request_fields, text, whole};
use super::hooks;
use super::launch;
use super::shared;
use super::{
    AxisLabels, Cell, ClassSpec, EndpointSpec, Labels, Load, LoadEngine, Mistake, ModelSpec, Phases, Recording,
    RunSpec, Shaping,
};

/// The default length of drain.
pub(super) const DRAIN: Nanos = Nanos::from_secs(30);
/// Default maximum length of a window that `min_requests` extends, as a multiple of its written length.
pub(super) const AT_MOST: u64 = 5;
/// The phases of a run that measures a server start: it sends one request when the server is ready, and waits
/// for the response.
const OF_A_START: Phases = Phases {
    idle: None,
    fill: Nanos::ZERO,
    stabilize: Nanos::ZERO,
    measure: Measure { duration: Nanos(1_000_000), min_requests: None, at_most: None },
    drain: Drain { duration: Nanos::from_secs(60), mode: DrainMode::Keep },
};
/// Axes that have their own fields in rows. All other axes are in `axes` of the labels.
const OWN_COLUMNS: [&str; 5] = ["endpoint", "model", "scenario", "batch_size", "qps"];

/// The key of a cell's server: its endpoint and, if the endpoint is launched or has hooks, also its
/// model and the flags that axes set.
type ServerKey = (Arc<str>, Option<Arc<str>>, Vec<(Arc<str>, Arc<str>)>);

/// Creates the runs of a plan's cells. Parts that cells have in common are created only once.
pub(crate) struct Resolver<'p> {
    plan: &'p Plan,
    endpoints: HashMap<ServerKey, Arc<EndpointSpec>>,
    models: HashMap<(Arc<str>, Engine), Arc<ModelSpec>>,
    scenarios: HashMap<Arc<str>, Resolved>,
    /// The scenario of a cell without the axis `scenario`: B1 if the plan declares no scenario, otherwise
    /// `None`.
    default_scenario: Option<Arc<str>>,
}

impl<'p> Resolver<'p> {
    /// Creates a resolver for `plan`.
    pub(crate) fn new(plan: &'p Plan) -> Resolver<'p> {
        Resolver {
            plan,
            endpoints: HashMap::new(),
            models: HashMap::new(),
            scenarios: HashMap::new(),
            default_scenario: plan.scenarios.is_empty().then(|| SCENARIO.into()),
        }
    }

    /// Returns the run of `cell` in `sweep` for repeat number `repeat`.
    pub(crate) fn run(&mut self, sweep: &Sweep, cell: &Cell, repeat: u32) -> Result<RunSpec, Mistake> {
        let plan = self.plan;
        let endpoint_name = text(cell, "endpoint").ok_or(Mistake::MissingAxis("endpoint"))?;
        let declared = named(&endpoint_name, "endpoint", &self.plan.endpoints)?;
        let (model_name, model) = self.model(cell, declared.engine)?;
        let endpoint = self.endpoint(cell, endpoint_name, declared, (&model_name, &model))?;
        let (scenario_name, mut scenario) = self.scenario(cell)?;
        scenario.apply(&request_fields(cell)?);
        let task = endpoint.api.protocol().task();
        if let Some(misfit) = scenario.misfit(endpoint.api) {
            let (scenario, endpoint, api) = ((*scenario_name).into(), endpoint.name.as_str().into(), endpoint.api);
            return Err(Mistake::OtherProtocol { scenario, endpoint, api, misfit: misfit.into() });
        }
        scenario.fit(task);
        has_room(&scenario.content)?;
        is_cold_by_a_nonce(&scenario, plan.nonce)?;
        let start = sweep.measures_start();
        let load = if start { Load::Closed { batch_size: 1 } } else { load(sweep, cell, &scenario)? };
        if scenario.opens_sessions && scenario.mix.is_empty() && load.qps().is_some() {
            scenario.content.talk.sessions = Sessions::Open;
        }
        let errors = self.errors(&endpoint.name, &scenario);
        let phases = if start { OF_A_START } else { phases(&plan.phases, &sweep.phases, &load)? };
        let engine = shared::engine(load_engine(plan, sweep), &load, &phases, &scenario.content)?;
        Ok(RunSpec {
            labels: Labels { model: model_name, scenario: scenario_name, axes: further_axes(cell, &load) },
            shaping: self.shaping(sweep, &endpoint, &scenario),
            mix: self.classes(sweep, &endpoint, &scenario),
            endpoint,
            model,
            scenario: scenario.content,
            phases,
            load,
            between: sweep.between.unwrap_or(plan.between),
            timeouts: plan.timeouts,
            connections: connections(cell)?.or(sweep.connections).unwrap_or(plan.connections),
            engine,
            record: recording(plan, sweep),
            errors,
            start,
            taken: Vec::new(),
            seed: plan.seed,
            repeat,
        })
    }

    fn endpoint(
        &mut self,
        cell: &Cell,
        name: Arc<str>,
        declared: &Endpoint,
        (model_name, model): (&Arc<str>, &ModelSpec),
    ) -> Result<Arc<EndpointSpec>, Mistake> {
        let flags = cell.texts().filter(|(axis, _)| axis::server_flag(axis).is_some());
        let flags: Vec<_> = flags.map(|(axis, value)| (Arc::clone(axis), Arc::clone(value))).collect();
        let is_filled = declared.launch.is_some() || !declared.hooks.is_empty();
        let of_model = is_filled.then(|| Arc::clone(model_name));
        let key = (name, of_model, flags);
        if let Some(made) = self.endpoints.get(&key) {
            return Ok(Arc::clone(made));
        }
        let mut made = launch::endpoint_spec(&key.0, declared, (model_name, &model.id), cell)?;
        made.hooks = hooks::hashed(declared, &made, (model_name, &model.id))?;
        let made = Arc::new(made);
        self.endpoints.insert(key, Arc::clone(&made));
        Ok(made)
    }

    fn model(&mut self, cell: &Cell, engine: Engine) -> Result<(Arc<str>, Arc<ModelSpec>), Mistake> {
        let key = (text(cell, "model").ok_or(Mistake::MissingAxis("model"))?, engine);
        if let Some(made) = self.models.get(&key) {
            return Ok((key.0, Arc::clone(made)));
        }
        let model = named(&key.0, "model", &self.plan.models)?;
        let no_id = || Mistake::NoModelId { model: key.0.to_string(), engine };
        let id = model.id.for_engine(engine).ok_or_else(no_id)?.to_owned();
        let tokenizer = model.tokenizer.as_ref().and_then(|tokenizer| tokenizer.identity()).map(str::to_owned);
        let made = Arc::new(ModelSpec { id, precision: model.precision.clone(), tokenizer });
        self.models.insert(key.clone(), Arc::clone(&made));
        Ok((key.0, made))
    }

    fn scenario(&mut self, cell: &Cell) -> Result<(Arc<str>, Resolved), Mistake> {
        let name = text(cell, "scenario").or_else(|| self.default_scenario.clone());
        let name = name.ok_or(Mistake::MissingAxis("scenario"))?;
        if let Some(made) = self.scenarios.get(&name) {
            return Ok((name, made.clone()));
        }
        let made = resolve_scenario(&name, &self.plan.scenarios)
            .ok_or_else(|| Mistake::UnknownName { axis: "scenario", name: name.to_string() })?;
        self.scenarios.insert(Arc::clone(&name), made.clone());
        Ok((name, made))
    }

    /// Returns whether an outage ends a run, as set by the scenario or else by the endpoint.
    fn errors(&self, endpoint: &str, scenario: &Resolved) -> ErrorPolicy {
        let of_endpoint = || self.plan.endpoints.get(endpoint)?.errors;
        scenario.errors.or_else(of_endpoint).unwrap_or_default()
    }

    /// The classes of a mix.
    fn classes(&self, sweep: &Sweep, endpoint: &EndpointSpec, scenario: &Resolved) -> Vec<ClassSpec> {
        let class = |Member { name, weight, scenario }: &Member| ClassSpec {
            name: name.as_str().into(),
            weight: *weight,
            scenario: scenario.content.clone(),
            shaping: self.shaping(sweep, endpoint, scenario),
        };
        scenario.mix.iter().map(class).collect()
    }

    /// Returns the fields that `scenario`'s requests to `endpoint` have regardless of their content.
    fn shaping(&self, sweep: &Sweep, endpoint: &EndpointSpec, scenario: &Resolved) -> Shaping {
        let declared = self.plan.endpoints.get(&endpoint.name);
        let of_endpoint = declared.map(|endpoint| &endpoint.extra);
        let mut fields = scenario.fields.clone();
        declared.iter().for_each(|endpoint| fields.headers.lay_below(&endpoint.headers));
        let takes_ignore_eos = endpoint.engine.takes_ignore_eos() && endpoint.api.has("ignore_eos");
        Shaping {
            stream: scenario.stream.or(sweep.stream).unwrap_or(self.plan.stream),
            ignore_eos: takes_ignore_eos && scenario.ignore_eos.unwrap_or(true),
            fields,
            extra: extra::fields(of_endpoint.unwrap_or(&Table::new()), &scenario.extra, endpoint.engine),
            nonce: scenario.nonce.unwrap_or(self.plan.nonce),
        }
    }
}

/// Fails if the first turn of a conversation does not fit into the context.
fn has_room(content: &Content) -> Result<(), Mistake> {
    let needs = content.least_context();
    match content.talk.context_limit {
        Some(limit) if needs > u64::from(limit) => Err(Mistake::ContextTooShort { limit, needs }),
        _ => Ok(()),
    }
}

/// Fails if `cache: cold` is combined with prompts that do not each begin with their own nonce.
fn is_cold_by_a_nonce(scenario: &Resolved, of_plan: NonceMode) -> Result<(), Mistake> {
    let cold = scenario.classes().filter(|class| class.content.cache == Cache::Cold);
    let other = cold.map(|class| class.nonce.unwrap_or(of_plan)).find(|nonce| *nonce != NonceMode::On);
    other.map_or(Ok(()), |nonce| Err(Mistake::ColdWithoutNonce(nonce)))
}

/// Returns the entry of `table` with the name that the cell has on `axis`.
fn named<'a, T>(name: &str, axis: &'static str, table: &'a Table<T>) -> Result<&'a T, Mistake> {
    table.get(name).ok_or_else(|| Mistake::UnknownName { axis, name: name.to_owned() })
}

/// Returns the labels of a cell's axes that have no columns of their own. They include the sweep's arrivals
/// if these have a rate profile or gamma gaps, because two sweeps with the same rate would otherwise look
/// alike.
fn further_axes(cell: &Cell, load: &Load) -> AxisLabels {
    let further = cell.texts().filter(|(axis, _)| !OWN_COLUMNS.contains(&&***axis));
    let further = further.map(|(axis, value)| (Arc::clone(axis), Arc::clone(value)));
    let of_sweep = match load {
        Load::Open { arrivals, .. } if cell.get("arrivals").is_none() => told(arrivals),
        _ => None,
    };
    AxisLabels::new(further.chain(of_sweep.map(|label| ("arrivals".into(), label.into()))))
}

fn told(arrivals: &Arrivals) -> Option<String> {
    let plain =
        matches!(arrivals, Arrivals { process: Process::Poisson | Process::Constant | Process::Trace, profile: None });
    (!plain).then(|| arrivals.label())
}

/// The load generator's settings for a sweep.
pub fn load_engine(plan: &Plan, sweep: &Sweep) -> LoadEngine {
    let default = LoadEngine::default();
    LoadEngine {
        threads: sweep.engine.threads.or(plan.engine.threads).unwrap_or(default.threads),
        timer: sweep.engine.timer.or(plan.engine.timer).unwrap_or(default.timer),
        workers: workers(plan, sweep).map_or(default.workers, |workers| workers.count),
    }
}

/// Returns the settings of the processes that send the loads of a sweep together, if the plan contains them.
pub fn workers<'p>(plan: &'p Plan, sweep: &'p Sweep) -> Option<&'p Workers> {
    sweep.engine.workers.as_ref().or(plan.engine.workers.as_ref())
}

/// Returns which data the runs of a sweep record in addition to their measurements.
fn recording(plan: &Plan, sweep: &Sweep) -> Recording {
    Recording { text: sweep.record.text.or(plan.record.text).unwrap_or_default() }
}

fn load(sweep: &Sweep, cell: &Cell, scenario: &Resolved) -> Result<Load, Mistake> {
    let batch_size = whole(cell, "batch_size")?;
    if let Some(trace) = &scenario.content.trace {
        // The trace's arrival times replace an arrival process; the rate is the mean rate of the trace.
        return Ok(Load::Open { qps: trace.qps(), arrivals: Process::Trace.into(), cap: batch_size });
    }
    let qps = number(cell, "qps")?;
    // The sweep's arrivals override the arrivals that a profile recorded.
    let said = arrivals(cell)?.or_else(|| sweep.arrivals.clone());
    let recorded = scenario.arrivals.as_deref();
    let says_load = batch_size.is_some() || said.as_ref().is_some_and(|said| said.own_rate().is_some());
    let qps = qps.or_else(|| recorded.filter(|_| !says_load).map(|recorded| recorded.qps));
    let arrivals = said.or_else(|| recorded.map(|recorded| recorded.arrivals.clone())).unwrap_or_default();
    match (batch_size, qps, arrivals.own_rate()) {
        (_, Some(_), Some(_)) => Err(Mistake::TwoRates),
        (cap, Some(qps), None) | (cap, None, Some(qps)) => Ok(Load::Open { qps, arrivals, cap }),
        (Some(batch_size), None, None) => Ok(Load::Closed { batch_size }),
        (None, None, None) => Err(Mistake::NoLoad),
    }
}

/// Returns the phases of a run: each phase is the sweep's if it is set, otherwise the plan's or the default.
pub fn phases(plan: &PhasesPatch, sweep: &PhasesPatch, load: &Load) -> Result<Phases, Mistake> {
    let mut measure =
        sweep.measure.or(plan.measure).unwrap_or(Measure { duration: MEASURE, min_requests: None, at_most: None });
    // Without `min_requests`, nothing extends the window, so a limit would only give different ids to equal
    // runs.
    measure.at_most = measure.min_requests.map(|_| {
        let default = Nanos(measure.duration.0.saturating_mul(AT_MOST));
        measure.at_most.unwrap_or(default)
    });
    Ok(Phases {
        idle: sweep.idle.or(plan.idle).filter(|idle| *idle > Nanos::ZERO),
        fill: fill(plan, sweep, load)?,
        stabilize: sweep.stabilize.or(plan.stabilize).unwrap_or(STABILIZE),
        measure,
        drain: sweep.drain.or(plan.drain).unwrap_or(Drain { duration: DRAIN, mode: DrainMode::Keep }),
    })
}

fn fill(plan: &PhasesPatch, sweep: &PhasesPatch, load: &Load) -> Result<Nanos, Mistake> {
    let Some(fill) = sweep.fill.or(plan.fill) else { return Ok(FILL) };
    match (fill.duration, fill.per_second, load) {
        (Some(duration), ..) => Ok(duration),
        (None, Some(rate), Load::Closed { batch_size }) => {
            time_for(*batch_size, rate).ok_or(Mistake::FillTooLong { slots: *batch_size })
        }
        (None, ..) => Ok(FILL),
    }
}

/// Returns `slots / rate` in exact arithmetic, rounded up to a whole nanosecond; `None` if the rate is not
/// above 0 or the time is too long.
fn time_for(slots: u32, rate: Decimal) -> Option<Nanos> {
    let (mantissa, scale) = rate.parts();
    let mantissa = u128::try_from(mantissa).ok().filter(|mantissa| *mantissa > 0)?;
    let scaled = (u128::from(slots) * 1_000_000_000).checked_mul(10u128.checked_pow(u32::from(scale))?)?;
    u64::try_from(scaled.div_ceil(mantissa)).ok().map(Nanos)
}
