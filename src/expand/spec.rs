//! One run with every default explicit: what the engine executes, what identity hashes, what `run.json` keeps.

use crate::plan::RequestFields;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::plan::model::content::Content;
use crate::plan::{
    Api, Arrivals, Between, Connections, Drain, Engine, ErrorPolicy, HookAction, HookPoint, Json, Measure, MockFigures,
    NonceMode, Profile, Reset, Scalar, TextOrSecret, Timeouts, Timer,
};
use crate::units::{Decimal, Nanos, Seed};

use super::evidence::TakenValue;
pub(crate) use super::labels::AxisLabels;
pub use super::labels::Labels;

/// One run. Everything but `labels`, `engine`, `record`, `errors` and `taken` is part of its identity. What many runs of a plan have in common is
/// shared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Names shown to people; not hashed.
    pub labels: Labels,
    /// The server, as declared.
    pub endpoint: Arc<EndpointSpec>,
    /// The model, as sent and declared.
    pub model: Arc<ModelSpec>,
    /// What is sent.
    pub scenario: Content,
    /// How each request is shaped.
    pub shaping: Shaping,
    /// The classes of a mix; each request is of one of them, and `scenario` is the most that one of them sends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<ClassSpec>,
    /// The load pattern.
    pub load: Load,
    /// The phases.
    pub phases: Phases,
    /// The pause after the run.
    pub between: Between,
    /// When a request is given up.
    pub timeouts: Timeouts,
    /// How requests get their connections.
    #[serde(default = "Connections::before_plans_said")]
    pub connections: Connections,
    /// How the load generator is built; not hashed.
    #[serde(default)]
    pub engine: LoadEngine,
    /// What is kept besides its numbers; not hashed.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub record: Recording,
    /// Whether an outage ends the run; not hashed.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub errors: ErrorPolicy,
    /// Whether the run is a start of its server, and sends one request to the server that is ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub start: bool,
    /// The loads that were taken from earlier sweeps, and what they follow from; not hashed, for the load is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenValue>,
    /// The plan's seed.
    pub seed: Seed,
    /// Which repeat of its cell this is, from 0.
    pub repeat: u32,
}

/// One class of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassSpec {
    /// The plan's name of its scenario; not hashed.
    pub name: Arc<str>,
    /// Its part of the sum of all weights is its share of the requests.
    pub weight: u64,
    /// What is sent.
    pub scenario: Content,
    /// How its requests are shaped.
    pub shaping: Shaping,
}

/// As records had it before there was `run`: true for `on`, false for `off`.
fn recorded_nonce<S: Serializer>(nonce: &NonceMode, serializer: S) -> Result<S::Ok, S::Error> {
    match nonce {
        NonceMode::On => serializer.serialize_bool(true),
        NonceMode::Off => serializer.serialize_bool(false),
        NonceMode::Run => nonce.serialize(serializer),
    }
}

/// How the load generator is built. How it was built for a run is among the run's facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadEngine {
    /// Threads that send and receive, from 1.
    pub threads: u32,
    /// What is waited with for the next instant of the schedule.
    pub timer: Timer,
}

impl Default for LoadEngine {
    fn default() -> Self {
        LoadEngine { threads: 1, timer: Timer::default() }
    }
}

/// What a run keeps besides its numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Whether what was sent and answered is kept word by word.
    pub text: bool,
}

/// The server under test, as the plan declares it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointSpec {
    /// The plan's name of the endpoint.
    pub name: String,
    /// The inference engine.
    pub engine: Engine,
    /// Which API is called.
    pub api: Api,
    /// The declared accelerator.
    pub gpu: Option<String>,
    /// The declared number of accelerators.
    pub gpus: Option<u32>,
    /// Declared facts about the server; nested tables flattened with dots (`flags.max_num_seqs`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server: BTreeMap<String, Scalar>,
    /// HTTP/2, where requests go over it and not over HTTP/1.1.
    pub http: Option<Http2>,
    /// The embedded mock's figures.
    pub mock: Option<MockFigures>,
    /// What sweepline starts the server with, where it does.
    pub launch: Option<LaunchSpec>,
    /// What the server forgets before the run.
    pub reset: Option<Reset>,
    /// The hooks that decide what is measured, with the cell's values; expressions over the port stay as they are written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<HookPoint, Vec<HookAction>>,
}

impl EndpointSpec {
    /// Whether a launched server is started for each run anew.
    pub fn restarts(&self) -> bool {
        self.reset == Some(Reset::Restart)
    }
}

/// What a launched server is started with, as far as it decides how fast it is. Where it runs, its port and how it ends are not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Program and arguments with the cell's values; expressions over the port stay as they are written.
    pub command: Vec<String>,
    /// Environment variables, secret ones by their references.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, TextOrSecret>,
}

impl LaunchSpec {
    /// Whether both start the same server, as far as a run's identity tells.
    pub fn is_like(&self, other: &LaunchSpec) -> bool {
        self.hashed_command() == other.hashed_command() && self.env == other.env
    }

    /// The command as it is hashed: its program by base name, for where that lies is this host's matter.
    pub(crate) fn hashed_command(&self) -> Vec<&str> {
        let mut command: Vec<&str> = self.command.iter().map(String::as_str).collect();
        if let Some(program) = command.first_mut() {
            *program = program.rsplit('/').next().unwrap_or(program);
        }
        command
    }
}

/// How requests go over HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http2 {
    /// The most requests under way on one connection.
    pub streams: u32,
}

/// The model under test.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// The id as sent to this endpoint.
    pub id: String,
    /// The declared number format.
    pub precision: Option<String>,
    /// Digest of its tokenizer's files, where the plan names them; `server` where the server is to count.
    pub tokenizer: Option<String>,
}

/// The request's fields that do not depend on its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shaping {
    /// Whether the answer comes token by token.
    pub stream: bool,
    /// Whether `ignore_eos: true` is sent (only where the engine takes it).
    pub ignore_eos: bool,
    /// RequestFields parameters and the like, each under its name.
    #[serde(flatten)]
    pub fields: RequestFields,
    /// Further fields of the body, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Json>,
    /// How far the nonce reaches that prompts open with.
    #[serde(serialize_with = "recorded_nonce")]
    pub nonce: NonceMode,
}

/// The load pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// A fixed number of requests kept in flight.
    Closed {
        /// Requests in flight.
        batch_size: u32,
    },
    /// Requests arrive at a rate, whatever the server does.
    Open {
        /// Arrivals per second; what 100 % stands for in a profile. Of a profile in requests per second its highest rate.
        qps: Decimal,
        /// How they are spaced, and how their rate changes.
        #[serde(with = "super::spacing")]
        arrivals: Arrivals,
        /// The most that may be in flight; others wait at the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<u32>,
    },
}

impl Load {
    /// Batch size of a closed loop, or the cap of an open one.
    pub fn batch_size(&self) -> Option<u32> {
        match self {
            Load::Closed { batch_size } => Some(*batch_size),
            Load::Open { cap, .. } => *cap,
        }
    }

    /// Declared arrivals per second of an open loop; with a profile what its 100 % are, or its highest rate.
    pub fn qps(&self) -> Option<Decimal> {
        match self {
            Load::Closed { .. } => None,
            Load::Open { qps, .. } => Some(*qps),
        }
    }

    /// How the rate of an open loop changes, where it does.
    pub fn profile(&self) -> Option<&Profile> {
        match self {
            Load::Closed { .. } => None,
            Load::Open { arrivals, .. } => arrivals.profile.as_deref(),
        }
    }
}

/// The phases with every default explicit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// The pause before the load begins; none where it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Nanos>,
    /// Length of fill (for a closed loop with a stated rate: slots / rate).
    pub fill: Nanos,
    /// Length of stabilize.
    pub stabilize: Nanos,
    /// The window.
    pub measure: Measure,
    /// The end.
    pub drain: Drain,
}

impl Phases {
    /// When the window begins, since the run's start.
    pub fn measure_start(&self) -> Nanos {
        self.fill.saturating_add(self.stabilize)
    }
}
