//! A run with every default explicit: the input of the engine, of the identity hash, and of `run.json`.

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

/// A run. Everything except `labels`, `engine`, `record`, `errors` and `taken` is part of its identity. Parts
/// that many runs of a plan have in common are shared in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Names for readers; not hashed.
    pub labels: Labels,
    /// The declared server.
    pub endpoint: Arc<EndpointSpec>,
    /// The model as sent in requests and as declared in the plan.
    pub model: Arc<ModelSpec>,
    /// The content of the requests.
    pub scenario: Content,
    /// The request fields that do not depend on the content of the requests.
    pub shaping: Shaping,
    /// The classes of a mix; each request belongs to one of them, and `scenario` contains the maximum
    /// over all classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<ClassSpec>,
    /// The load pattern.
    pub load: Load,
    /// The phases.
    pub phases: Phases,
    /// The pause after the run.
    pub between: Between,
    /// Timeouts after which a request is given up.
    pub timeouts: Timeouts,
    /// How requests get their connections.
    #[serde(default = "Connections::before_plans_said")]
    pub connections: Connections,
    /// The load generator's settings; not hashed.
    #[serde(default)]
    pub engine: LoadEngine,
    /// The data that the run records in addition to its measurements; not hashed.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub record: Recording,
    /// Whether an outage ends the run; not hashed.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub errors: ErrorPolicy,
    /// Whether the run measures a start of its server, with one request as soon as the server is ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub start: bool,
    /// The loads derived from earlier sweeps, with their evidence; not hashed, because the loads
    /// themselves are hashed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenValue>,
    /// The plan's seed.
    pub seed: Seed,
    /// The number of the run's repeat within its cell, from 0.
    pub repeat: u32,
}

/// One class of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassSpec {
    /// The plan's name for the class's scenario; not hashed.
    pub name: Arc<str>,
    /// The weight of the class. Its share of the requests is its weight divided by the sum of all weights.
    pub weight: u64,
    /// The content of the class's requests.
    pub scenario: Content,
    /// The request fields of the class that do not depend on the content of its requests.
    pub shaping: Shaping,
}

/// Writes `on` as true and `off` as false, as in records from before the mode `run` existed.
fn recorded_nonce<S: Serializer>(nonce: &NonceMode, serializer: S) -> Result<S::Ok, S::Error> {
    match nonce {
        NonceMode::On => serializer.serialize_bool(true),
        NonceMode::Off => serializer.serialize_bool(false),
        NonceMode::Run => nonce.serialize(serializer),
    }
}

/// The load generator's settings. The facts of each run record the settings that it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadEngine {
    /// Number of threads that send and receive, at least 1.
    pub threads: u32,
    /// How the generator waits for the next dispatch of the schedule.
    pub timer: Timer,
    /// Number of processes that send the load together, at least 1.
    #[serde(default = "alone", skip_serializing_if = "is_alone")]
    pub workers: u32,
}

fn alone() -> u32 {
    1
}

fn is_alone(workers: &u32) -> bool {
    *workers == 1
}

impl Default for LoadEngine {
    fn default() -> Self {
        LoadEngine { threads: 1, timer: Timer::default(), workers: alone() }
    }
}

/// The data that a run records in addition to its measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Whether the texts of requests and responses are recorded verbatim.
    pub text: bool,
}

/// The server under test, as declared in the plan.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointSpec {
    /// The plan's name for the endpoint.
    pub name: String,
    /// The inference engine.
    pub engine: Engine,
    /// The API to call.
    pub api: Api,
    /// The declared accelerator.
    pub gpu: Option<String>,
    /// The declared number of accelerators.
    pub gpus: Option<u32>,
    /// Declared facts about the server. Nested tables are flattened with dots (`flags.max_num_seqs`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server: BTreeMap<String, Scalar>,
    /// HTTP/2, if requests use it instead of HTTP/1.1.
    pub http: Option<Http2>,
    /// The embedded mock's figures.
    pub mock: Option<MockFigures>,
    /// How sweepline starts the server; `None` if it does not start it.
    pub launch: Option<LaunchSpec>,
    /// The state of the server that is reset before the run.
    pub reset: Option<Reset>,
    /// The hooks that affect the measurements, with the cell's values inserted; expressions over the
    /// port stay as written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<HookPoint, Vec<HookAction>>,
}

impl EndpointSpec {
    /// Whether a launched server is started again for each run.
    pub fn restarts(&self) -> bool {
        self.reset == Some(Reset::Restart)
    }
}

/// The settings of a launched server that affect its speed. Its working directory, its port and its stop
/// command are excluded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Program and arguments with the cell's values; expressions over the port stay as written.
    pub command: Vec<String>,
    /// Environment variables; secret ones are represented by their references.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, TextOrSecret>,
}

impl LaunchSpec {
    /// Whether both settings start the same server, as far as a run's identity is concerned.
    pub fn is_like(&self, other: &LaunchSpec) -> bool {
        self.hashed_command() == other.hashed_command() && self.env == other.env
    }

    /// The command in its hashed form: the program is given by its base name, because its location is
    /// specific to this host.
    pub(crate) fn hashed_command(&self) -> Vec<&str> {
        let mut command: Vec<&str> = self.command.iter().map(String::as_str).collect();
        if let Some(program) = command.first_mut() {
            *program = program.rsplit('/').next().unwrap_or(program);
        }
        command
    }
}

/// Settings of requests over HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http2 {
    /// Maximum in-flight requests per connection.
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
    /// Digest of the files of the model's tokenizer, if the plan names them; `server` if the server
    /// counts tokens.
    pub tokenizer: Option<String>,
}

/// The request's fields that do not depend on its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shaping {
    /// Whether the response is streamed token by token.
    pub stream: bool,
    /// Whether `ignore_eos: true` is sent (only if the engine accepts it).
    pub ignore_eos: bool,
    /// Sampling parameters and similar fields, by name.
    #[serde(flatten)]
    pub fields: RequestFields,
    /// Additional fields of the body, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Json>,
    /// The scope of the nonce with which prompts begin.
    #[serde(serialize_with = "recorded_nonce")]
    pub nonce: NonceMode,
}

/// The load pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// A fixed number of requests kept in flight.
    Closed {
        /// Number of requests in flight.
        batch_size: u32,
    },
    /// Requests arrive on a fixed schedule, regardless of the server.
    Open {
        /// Arrivals per second. For a profile in shares, the rate for 100 %; for a profile in requests per
        /// second, its highest rate.
        qps: Decimal,
        /// How the arrivals are spaced, and how their rate changes.
        #[serde(with = "super::spacing")]
        arrivals: Arrivals,
        /// Maximum number of requests in flight; others wait at the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<u32>,
    },
}

impl Load {
    /// Batch size of a closed loop, or the cap of an open loop.
    pub fn batch_size(&self) -> Option<u32> {
        match self {
            Load::Closed { batch_size } => Some(*batch_size),
            Load::Open { cap, .. } => *cap,
        }
    }

    /// Declared arrivals per second of an open loop. For a profile in shares, the rate for 100 %; for a
    /// profile in requests per second, its highest rate.
    pub fn qps(&self) -> Option<Decimal> {
        match self {
            Load::Closed { .. } => None,
            Load::Open { qps, .. } => Some(*qps),
        }
    }

    /// The rate profile of an open loop; `None` if its rate is constant, and for a closed loop.
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
    /// The pause before the load begins; `None` if it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Nanos>,
    /// Length of fill (for a closed loop with `per_second`: slots / rate).
    pub fill: Nanos,
    /// Length of stabilize.
    pub stabilize: Nanos,
    /// The window.
    pub measure: Measure,
    /// The drain.
    pub drain: Drain,
}

impl Phases {
    /// The start of the window, relative to the run's start.
    pub fn measure_start(&self) -> Nanos {
        self.fill.saturating_add(self.stabilize)
    }
}
