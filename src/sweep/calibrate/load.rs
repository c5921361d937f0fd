//! The loads that a calibration measures: the loads of a plan, or one load given by flags, as runs against
//! the mock.

use crate::plan::RequestFields;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::expand::{
    Course, EndpointSpec, Expansion, Http2, Labels, Load, LoadEngine, ModelSpec, Phases, PlannedRun, Pool, Recording,
    RunSpec, Shaping,
};
use crate::plan::model::content::Content;
use crate::plan::{
    Api, Between, Connections, Drain, DrainMode, Engine, ErrorPolicy, Measure, MockFigures, NonceMode, Timeouts,
};
use crate::sweep::event::load_name;
use crate::units::{Decimal, Nanos, Seed};
use crate::workload::lengths::{Expected, expected};

/// Fill and stabilize times of every load.
const FILL: Nanos = Nanos::from_millis(300);
const STABILIZE: Nanos = Nanos::from_millis(200);
/// Requests needed for a 99th percentile (METRICS, Percentiles). The window is extended until it
/// contains this many.
const ENOUGH: u64 = 368;
/// The maximum factor by which a window is extended.
const AT_MOST: u64 = 3;
/// Time to start the mock and read its log, in addition to the load itself.
const AROUND: Nanos = Nanos::from_millis(500);
/// More streams than any load has, so that no request waits in the mock.
const SLOTS: u32 = 1_000_000;

/// One load on the generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationLoad {
    /// Requests in flight, or their rate.
    #[schemars(with = "Map<String, Value>")]
    pub load: Load,
    /// The content of requests and the requested output.
    #[schemars(with = "Value")]
    pub content: Content,
    /// Whether responses are streamed.
    pub stream: bool,
    /// The API that is called.
    pub api: Api,
    /// The HTTP/2 settings, if requests use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http2>,
    /// How requests get their connections.
    pub connections: Connections,
    /// How the generator is built.
    pub engine: LoadEngine,
    /// The mock's time from the arrival of a request to the first token.
    pub ttft: Nanos,
    /// The mock's time between tokens.
    pub itl: Nanos,
}

/// The timing of the mock, if the caller specifies it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Time to the first token.
    pub ttft: Option<Nanos>,
    /// Time between tokens.
    pub itl: Option<Nanos>,
}

impl Timing {
    /// Applies this timing on top of the figures of an endpoint's own mock, which are applied on top of
    /// the mock's defaults.
    fn over(self, figures: Option<&MockFigures>) -> (Nanos, Nanos) {
        let default = MockFigures::default();
        let figures = figures.unwrap_or(&default);
        (self.ttft.unwrap_or(figures.ttft), self.itl.unwrap_or(figures.itl))
    }
}

/// If a search or ladder has at most this many loads, all of them are measured.
const FEW_LOADS: usize = 8;

/// Returns the distinct loads of a plan's runs, and of the possible runs of its searches and ladders,
/// heaviest first. Endpoints that are not mocks get `timing`, or the mock's default; `at_least` is the
/// shortest window.
pub(crate) fn of_plan(expansion: &Expansion, timing: Timing, at_least: Nanos) -> Vec<CalibrationLoad> {
    let mut loads: Vec<CalibrationLoad> = Vec::new();
    let chosen = expansion.pools.iter().flat_map(spread);
    for run in expansion.runs.iter().chain(chosen) {
        let spec = &run.spec;
        let (ttft, itl) = timing.over(spec.endpoint.mock.as_ref());
        let load = CalibrationLoad {
            load: at_peak(spec),
            content: of_one_length(&spec.scenario),
            stream: spec.shaping.stream,
            api: spec.endpoint.api,
            http: spec.endpoint.http,
            connections: spec.connections,
            engine: spec.engine,
            ttft,
            itl,
        }
        .fitting(at_least);
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads.sort_by(|a, b| b.events_per_second().total_cmp(&a.events_per_second()));
    loads
}

/// Picks runs from a pool: one of each load. If there are many loads, picks loads that are each twice as
/// heavy as the previous one, and the heaviest, because the generator's cost changes little in between.
fn spread(pool: &Pool) -> impl Iterator<Item = &PlannedRun> {
    let loads = pool.loads();
    let (few, heaviest) = (loads.len() <= FEW_LOADS, loads.last().copied());
    let mut last = 0.0;
    let members = pool.members.iter().filter(move |member| {
        let is_far = if few { member.load > last } else { member.load >= 2.0 * last };
        let is_taken = is_far || (Some(member.load) == heaviest && member.load > last);
        if is_taken {
            last = member.load;
        }
        is_taken
    });
    members.map(|member| &member.run)
}

/// Returns the load of a run. For a rate profile this is the highest rate, held constant, because the
/// generator must sustain that rate.
fn at_peak(spec: &RunSpec) -> Load {
    match (&spec.load, Course::new(&spec.load, &spec.phases)) {
        (Load::Open { arrivals, cap, .. }, Some(course)) if arrivals.profile.is_some() => {
            // Rounded up to a thousandth of a request per second, so that the printed rate is
            // short.
            let thousandths = (course.peak() * 1e3).ceil().min(1e15) as i64;
            Load::Open { qps: Decimal::new(thousandths.max(1), 3), arrivals: arrivals.process.into(), cap: *cap }
        }
        (load, _) => load.clone(),
    }
}

/// Returns the same content with all requests of the average length, because the generator's cost
/// depends on the sum of the lengths.
fn of_one_length(content: &Content) -> Content {
    let Expected { prompt, output } = expected(content);
    // Responses without tokens have no output to request.
    let least = f64::from(content.output_tokens.min(1));
    let (prompt_tokens, output_tokens) = (prompt.round() as u32, output.round().max(least) as u32);
    let turns = content.mean_turns().round().max(1.0) as u32;
    let shared =
        Content { lengths: None, trace: None, data: None, sharing: None, turn_counts: None, ..content.clone() };
    Content { prompt_tokens, output_tokens, turns, ..shared }
}

/// Creates one load of short, distinct prompts.
pub(crate) fn of_flags(load: Load, (prompt_tokens, output_tokens): (u32, u32), timing: Timing) -> CalibrationLoad {
    let content = Content { prompt_tokens, output_tokens, ..Content::default() };
    let (ttft, itl) = timing.over(None);
    CalibrationLoad {
        load,
        content,
        stream: true,
        api: Api::default(),
        http: None,
        connections: Connections::default(),
        engine: LoadEngine::default(),
        ttft,
        itl,
    }
}

impl CalibrationLoad {
    /// Shortens responses to at most the length of the window, so that requests begin inside it.
    pub(crate) fn fitting(mut self, at_least: Nanos) -> CalibrationLoad {
        let left = longest_window(at_least).saturating_sub(self.ttft).0;
        let most = left.checked_div(self.itl.0).map_or(u32::MAX, |gaps| u32::try_from(gaps + 1).unwrap_or(u32::MAX));
        self.content.output_tokens = self.content.output_tokens.min(most);
        self
    }

    /// Returns the same load at another level: batch size or arrivals per second.
    pub(crate) fn at_level(&self, level: u64) -> CalibrationLoad {
        let whole = u32::try_from(level).unwrap_or(u32::MAX);
        let load = match &self.load {
            Load::Closed { .. } => Load::Closed { batch_size: whole },
            // A cap would hold back the very load that the search looks for.
            Load::Open { arrivals, .. } => {
                Load::Open { qps: Decimal::from(whole), arrivals: arrivals.clone(), cap: None }
            }
        };
        CalibrationLoad { load, ..self.clone() }
    }

    /// Whether two loads differ only in their level.
    pub(crate) fn is_shaped_like(&self, other: &CalibrationLoad) -> bool {
        self.at_level(1) == other.at_level(1)
    }

    /// Batch size, or arrivals per second rounded down.
    pub fn level(&self) -> u64 {
        match self.load {
            Load::Closed { batch_size } => u64::from(batch_size),
            Load::Open { qps, .. } => qps.to_f64() as u64,
        }
    }

    /// Whether the load is an open loop.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.load, Load::Open { .. })
    }

    /// Duration of one response of the mock.
    pub fn answer(&self) -> Nanos {
        let gaps = u64::from(self.content.output_tokens.saturating_sub(1));
        Nanos(self.ttft.0.saturating_add(self.itl.0.saturating_mul(gaps)))
    }

    /// Requests per second of this load.
    pub fn requests_per_second(&self) -> f64 {
        match self.load {
            // Even an instant response takes a network round trip.
            Load::Closed { batch_size } => f64::from(batch_size) / self.answer().secs().max(1e-4),
            Load::Open { qps, .. } => qps.to_f64(),
        }
    }

    /// Token events per second of this load.
    fn events_per_second(&self) -> f64 {
        self.requests_per_second() * f64::from(self.content.output_tokens)
    }

    /// Estimates how long measuring this load takes, with windows of at least `at_least`.
    pub fn takes(&self, at_least: Nanos) -> Nanos {
        let for_enough = Nanos((ENOUGH as f64 / self.requests_per_second() * 1e9) as u64);
        let window = for_enough.clamp(at_least, longest_window(at_least));
        [FILL, STABILIZE, window, self.answer(), AROUND].into_iter().fold(Nanos::ZERO, Nanos::saturating_add)
    }

    /// Returns the run that applies this load to the mock.
    pub fn spec(&self, at_least: Nanos) -> RunSpec {
        let figures = self.figures();
        RunSpec {
            labels: Labels::default(),
            endpoint: Arc::new(EndpointSpec {
                name: "mock".to_owned(),
                engine: Engine::Mock,
                api: self.api,
                gpu: None,
                gpus: None,
                http: self.http,
                server: Default::default(),
                mock: Some(figures),
                launch: None,
                reset: None,
                hooks: Default::default(),
            }),
            model: Arc::new(ModelSpec { id: "mock".to_owned(), precision: None, tokenizer: None }),
            scenario: self.content.clone(),
            shaping: Shaping {
                stream: self.stream,
                ignore_eos: true,
                fields: RequestFields::default(),
                extra: Default::default(),
                nonce: NonceMode::On,
            },
            mix: Vec::new(),
            load: self.load.clone(),
            phases: self.phases(at_least),
            between: Between::default(),
            timeouts: Timeouts::default(),
            connections: self.connections,
            engine: self.engine,
            record: Recording::default(),
            errors: ErrorPolicy::default(),
            start: false,
            taken: Vec::new(),
            seed: Seed(0),
            repeat: 0,
        }
    }

    /// The mock's behavior, with the given timing and no queue, so that the times of its responses
    /// are known.
    pub fn figures(&self) -> MockFigures {
        MockFigures { ttft: self.ttft, itl: self.itl, slots: SLOTS, ..MockFigures::default() }
    }

    fn phases(&self, at_least: Nanos) -> Phases {
        let at_most = longest_window(at_least);
        let measure = Measure { duration: at_least, min_requests: Some(ENOUGH), at_most: Some(at_most) };
        // The drain waits for every measured request, with headroom for a slow machine.
        let drain = Nanos(self.answer().0.saturating_mul(2)).saturating_add(Nanos::from_secs(10));
        Phases {
            idle: None,
            fill: FILL,
            stabilize: STABILIZE,
            measure,
            drain: Drain { duration: drain, mode: DrainMode::Keep },
        }
    }
}

fn longest_window(at_least: Nanos) -> Nanos {
    Nanos(at_least.0.saturating_mul(AT_MOST))
}

/// `batch 8 · 50 → 256 tokens · TTFT 20ms, ITL 4ms`, followed by all settings that differ from the
/// default.
impl fmt::Display for CalibrationLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prompt = self.content.system_tokens + self.content.prompt_tokens;
        write!(f, "{} · {prompt} → {} tokens", load_name(&self.load), self.content.output_tokens)?;
        write!(f, " · TTFT {}, ITL {}", self.ttft, self.itl)?;
        if let Some(Http2 { streams }) = self.http {
            write!(f, " · HTTP/2, {streams} streams")?;
        }
        if self.connections != Connections::default() {
            write!(f, " · connections {}", self.connections.name())?;
        }
        if self.engine.threads != LoadEngine::default().threads {
            write!(f, " · {} threads", self.engine.threads)?;
        }
        if self.engine.timer != LoadEngine::default().timer {
            write!(f, " · timer {}", self.engine.timer.name())?;
        }
        if self.api != Api::default() {
            write!(f, " · api {}", self.api.name())?;
        }
        if !self.stream { f.write_str(" · not streamed") } else { Ok(()) }
    }
}
