//! The messages between a coordinator and its workers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::Stage;
use crate::expand::RunSpec;
use crate::plan::{Access, Headers, SecretRef};
use crate::rows::{Facts, Sample, Spoiled, TextRow};
use crate::units::NonceSeed;

/// The version of the message format.
pub(super) const PROTOCOL: u32 = 2;

/// The version of a program and of its messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Build {
    /// The version of sweepline.
    pub(super) version: String,
    /// The version of the message format.
    pub(super) protocol: u32,
}

impl Build {
    /// Returns the version of this program and of its message format.
    pub(super) fn own() -> Build {
        Build { version: super::hooks::version(), protocol: PROTOCOL }
    }
}

/// The order for a worker, with everything that the worker needs to send its share of a run. Secrets are
/// included only as references; the worker reads them from its own environment and files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The spec of the run. Data sets and traces to which the spec refers by digest are sent separately.
    pub spec: RunSpec,
    /// The address of the server.
    pub url: String,
    /// How the server is reached, beyond its address.
    pub access: Access,
    /// The readiness path of the server; `None` if it has none.
    pub ready: Option<String>,
    /// The reference to the API key; `None` without a key.
    pub api_key: Option<SecretRef>,
    /// Headers of the endpoint.
    pub headers: Headers,
    /// The plan's folder; paths of files with secrets may be relative to it.
    pub folder: PathBuf,
    /// The prefix of every `x-request-id`.
    pub id_prefix: String,
    /// The random bits from which the attempt's nonces are derived.
    pub nonce_seed: NonceSeed,
    /// The files of the model's tokenizer; `None` if the plan does not specify them.
    pub tokenizer: Option<TokenizerTexts>,
    /// The number of the worker, counted from 0, and the number of workers.
    pub share: (u32, u32),
}

/// The contents of a tokenizer's files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TokenizerTexts {
    /// The text of `tokenizer.json`.
    pub tokenizer: String,
    /// The text of `tokenizer_config.json`; `None` without this file.
    pub config: Option<String>,
    /// The text of `chat_template.jinja`; `None` without this file.
    pub template: Option<String>,
}

/// A message from the coordinator to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToWorker {
    /// The first message.
    Hello(Build),
    /// The order. The data sets and traces follow as a separate frame.
    Order(Box<Order>),
    /// The cue to open connections.
    Open,
    /// Requests the time of the worker's clock; contains the number of the ping.
    Ping(u32),
    /// The run's start on the worker's monotonic clock, in nanoseconds.
    Start(u64),
    /// The end of the run, in nanoseconds since its start.
    Finish(u64),
    /// The run was interrupted; the worker stops it.
    Stop,
    /// The worker may exit.
    Bye,
}

/// A message from a worker to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromWorker {
    /// The first message, with the name of the worker's machine.
    Hello(Build, String),
    /// The worker has reached this stage.
    Stage(Told),
    /// The number of a ping, and the time of the worker's monotonic clock when the ping arrived, in
    /// nanoseconds.
    Pong(u32, u64),
    /// The worker's live counters.
    Progress(Counters),
    /// Samples of the worker's time series.
    Samples(Vec<Sample>),
    /// Texts of requests.
    Texts(Vec<TextRow>),
    /// The worker has sent all results; contains the facts of its share of the run.
    Done(Box<Facts>),
    /// The worker cannot continue.
    Failed(Failed),
}

/// The serialized form of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// The worker is prepared: request contents are being created, and connections may be opened.
    Prepared,
    /// All connections that must be open before the run starts are open.
    Opened,
    /// The clock of the run has started, this many nanoseconds late.
    Began(u64),
    /// All requests of the worker in the measure window have ended.
    Measured,
}

impl From<Stage> for Told {
    fn from(stage: Stage) -> Told {
        match stage {
            Stage::Prepared => Told::Prepared,
            Stage::Opened => Told::Opened,
            Stage::Began(late) => Told::Began(late),
            Stage::Measured => Told::Measured,
        }
    }
}

/// The live counters of a worker.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Counters {
    /// Index of the current phase.
    pub(super) phase: u8,
    /// Time since the run's start, in nanoseconds.
    pub(super) elapsed_ns: u64,
    /// Start and end of the measure window, in nanoseconds since the run's start, as far as they are known.
    pub(super) window_ns: [u64; 2],
    /// Number of requests in flight.
    pub(super) in_flight: u64,
    /// Number of requests scheduled in the measure window so far.
    pub(super) in_window: u64,
    /// Number of token events received so far.
    pub(super) token_events: u64,
    /// Number of other signs that the server is responding, as in `Progress`.
    pub(super) signs: u64,
}

/// Why a worker cannot continue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Failed {
    /// The worker was stopped.
    Stopped,
    /// The environment spoiled the attempt.
    Spoiled(Spoiled),
    /// Any other reason, as text.
    Other(String),
}
