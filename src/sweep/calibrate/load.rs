//! The loads that a calibration measures: the loads of a plan, or one load given by flags. Each load is
//! measured as a run against the mock.

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

/// Length of the fill phase of every measured load.
const FILL: Nanos = Nanos::from_millis(300);
const STABILIZE: Nanos = Nanos::from_millis(200);
/// Number of requests that a 99th percentile requires (`docs/METRICS.md`, Percentiles). The measure window
/// is extended until it contains this many requests.
const ENOUGH: u64 = 368;
/// Maximum factor by which the measure window is extended.
const AT_MOST: u64 = 3;
/// Estimated overhead of a measurement: the time to start the mock and to read its log.
const AROUND: Nanos = Nanos::from_millis(500);
/// Number of requests that the mock serves concurrently: more than any load has in flight, so that no
/// request waits in the mock.
const SLOTS: u32 = 1_000_000;

/// A load that a calibration measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationLoad {
    /// The number of requests in flight, or the rate of arrivals.
    #[schemars(with = "Map<String, Value>")]
    pub load: Load,
    /// The content of the requests, and the requested length of responses.
    #[schemars(with = "Value")]
    pub content: Content,
    /// Whether responses are streamed.
    pub stream: bool,
    /// The API that is called.
    pub api: Api,
    /// The HTTP/2 settings; null if requests use HTTP/1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http2>,
    /// How connections are opened and reused.
    pub connections: Connections,
    /// The settings of the load generator.
    pub engine: LoadEngine,
    /// Time from the arrival of a request at the mock to the first token.
    pub ttft: Nanos,
    /// Time between tokens of the mock's responses.
    pub itl: Nanos,
}

/// The timing of the mock; `None` for values that the caller does not specify.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Time from the arrival of a request to the first token.
    pub ttft: Option<Nanos>,
    /// Time between tokens.
    pub itl: Option<Nanos>,
}

impl Timing {
    /// Returns the TTFT and the time between tokens. Values that are not specified are taken from the
    /// figures of the endpoint's mock, or else from the mock's defaults.
    fn over(self, figures: Option<&MockFigures>) -> (Nanos, Nanos) {
        let default = MockFigures::default();
        let figures = figures.unwrap_or(&default);
        (self.ttft.unwrap_or(figures.ttft), self.itl.unwrap_or(figures.itl))
    }
}

/// If a search or a ladder has at most this many loads, all of them are measured.
const FEW_LOADS: usize = 8;

/// Returns the distinct loads of a plan's runs, and of the possible runs of its searches and ladders,
/// heaviest first. `timing` replaces the timing of the endpoints' mocks. `at_least` is the minimum length
/// of the measure window.
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

/// Picks one run for each load of a pool. If the pool has many loads, picks only the heaviest one and
/// those that are at least twice as heavy as the previously picked one, because the generator's costs
/// change little in between.
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

/// Returns the load of a run. For a rate profile, this is a constant load at the profile's highest rate,
/// because the generator must sustain that rate.
fn at_peak(spec: &RunSpec) -> Load {
    match (&spec.load, Course::new(&spec.load, &spec.phases)) {
        (Load::Open { arrivals, cap, .. }, Some(course)) if arrivals.profile.is_some() => {
            // The rate is rounded up to a thousandth of a request per second, so that it is short when
            // printed.
            let thousandths = (course.peak() * 1e3).ceil().min(1e15) as i64;
            Load::Open { qps: Decimal::new(thousandths.max(1), 3), arrivals: arrivals.process.into(), cap: *cap }
        }
        (load, _) => load.clone(),
    }
}

/// Returns the same content with all requests and responses of average length, because the generator's
/// costs depend only on the total length.
fn of_one_length(content: &Content) -> Content {
    let Expected { prompt, output } = expected(content);
    // At least one output token is requested, unless the content requests none.
    let least = f64::from(content.output_tokens.min(1));
    let (prompt_tokens, output_tokens) = (prompt.round() as u32, output.round().max(least) as u32);
    let turns = content.mean_turns().round().max(1.0) as u32;
    let shared =
        Content { lengths: None, trace: None, data: None, sharing: None, turn_counts: None, ..content.clone() };
    Content { prompt_tokens, output_tokens, turns, ..shared }
}

/// Creates the load that the command-line flags describe.
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
    /// Shortens responses so that a response takes at most as long as the longest measure window.
    /// Otherwise, no request of a closed loop might begin in the window.
    pub(crate) fn fitting(mut self, at_least: Nanos) -> CalibrationLoad {
        let left = longest_window(at_least).saturating_sub(self.ttft).0;
        let most = left.checked_div(self.itl.0).map_or(u32::MAX, |gaps| u32::try_from(gaps + 1).unwrap_or(u32::MAX));
        self.content.output_tokens = self.content.output_tokens.min(most);
        self
    }

    /// Returns the same load at another level, which is the batch size or the number of arrivals per
    /// second.
    pub(crate) fn at_level(&self, level: u64) -> CalibrationLoad {
        let whole = u32::try_from(level).unwrap_or(u32::MAX);
        let load = match &self.load {
            Load::Closed { .. } => Load::Closed { batch_size: whole },
            // The cap is removed, because it would limit the load whose maximum the search looks for.
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

    /// Returns the level of the load: the batch size, or the number of arrivals per second, rounded down.
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

    /// Returns the duration of a response of the mock.
    pub fn answer(&self) -> Nanos {
        let gaps = u64::from(self.content.output_tokens.saturating_sub(1));
        Nanos(self.ttft.0.saturating_add(self.itl.0.saturating_mul(gaps)))
    }

    /// Returns the number of requests per second of this load.
    pub fn requests_per_second(&self) -> f64 {
        match self.load {
            // Even an immediate response takes a network round trip.
            Load::Closed { batch_size } => f64::from(batch_size) / self.answer().secs().max(1e-4),
            Load::Open { qps, .. } => qps.to_f64(),
        }
    }

    /// Returns the number of token events per second of this load.
    fn events_per_second(&self) -> f64 {
        self.requests_per_second() * f64::from(self.content.output_tokens)
    }

    /// Estimates how long measuring this load takes. `at_least` is the minimum length of the measure
    /// window.
    pub fn takes(&self, at_least: Nanos) -> Nanos {
        let for_enough = Nanos((ENOUGH as f64 / self.requests_per_second() * 1e9) as u64);
        let window = for_enough.clamp(at_least, longest_window(at_least));
        [FILL, STABILIZE, window, self.answer(), AROUND].into_iter().fold(Nanos::ZERO, Nanos::saturating_add)
    }

    /// Returns the spec of the run that sends this load to the mock.
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

    /// Returns the figures of the mock, which has the load's timing and no queue, so that the times of its
    /// responses are known.
    pub fn figures(&self) -> MockFigures {
        MockFigures { ttft: self.ttft, itl: self.itl, slots: SLOTS, ..MockFigures::default() }
    }

    fn phases(&self, at_least: Nanos) -> Phases {
        let at_most = longest_window(at_least);
        let measure = Measure { duration: at_least, min_requests: Some(ENOUGH), at_most: Some(at_most) };
        // The drain lasts long enough for every measured request to end, even on a slow machine.
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

/// Writes the load, such as `batch 8 · 50 → 256 tokens · TTFT 20ms, ITL 4ms`, followed by all settings that
/// differ from the defaults.
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
