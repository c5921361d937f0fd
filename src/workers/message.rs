//! The messages between a coordinator and its workers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::Stage;
use crate::expand::RunSpec;
use crate::plan::{Headers, SecretRef};
use crate::rows::{Facts, Sample, Spoiled, TextRow};
use crate::units::NonceSeed;

/// The version of these messages.
pub(super) const PROTOCOL: u32 = 1;

/// A program and the messages that it understands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Build {
    /// The version of sweepline.
    pub(super) version: String,
    /// The version of the messages.
    pub(super) protocol: u32,
}

impl Build {
    /// Returns this program.
    pub(super) fn own() -> Build {
        Build { version: super::hooks::version(), protocol: PROTOCOL }
    }
}

/// The order of a worker, with everything that it needs to send its share of a run. Secrets are included
/// as references; the worker reads them from its own environment and files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The run. Texts and traces to which it refers by digest are sent separately.
    pub spec: RunSpec,
    /// The address of the server.
    pub url: String,
    /// The readiness path of the server, if any.
    pub ready: Option<String>,
    /// The reference to the API key.
    pub api_key: Option<SecretRef>,
    /// Headers of the endpoint.
    pub headers: Headers,
    /// Whether to accept any certificate.
    pub insecure_tls: bool,
    /// The plan's folder; paths of files with secrets may be relative to it.
    pub folder: PathBuf,
    /// The prefix of every `x-request-id`.
    pub id_prefix: String,
    /// The random bits of the attempt's nonces.
    pub nonce_seed: NonceSeed,
    /// The files of the model's tokenizer, if the plan specifies them.
    pub tokenizer: Option<TokenizerTexts>,
    /// The number of the worker, from 0, and the number of workers.
    pub share: (u32, u32),
}

/// The contents of a tokenizer's files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TokenizerTexts {
    /// `tokenizer.json`.
    pub tokenizer: String,
    /// `tokenizer_config.json`.
    pub config: Option<String>,
    /// `chat_template.jinja`.
    pub template: Option<String>,
}

/// A message from the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToWorker {
    /// The first message.
    Hello(Build),
    /// The run; its material follows.
    Order(Box<Order>),
    /// Connections may be opened.
    Open,
    /// Requests the reading of the worker's clock.
    Ping(u32),
    /// The run's start on the worker's monotonic clock, in nanoseconds.
    Start(u64),
    /// The end of the run, in nanoseconds since its start.
    Finish(u64),
    /// The run is interrupted.
    Stop,
    /// The worker may exit.
    Bye,
}

/// A message from a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromWorker {
    /// The first message, with the name of the worker's machine.
    Hello(Build, String),
    /// The stage that the worker has reached.
    Stage(Told),
    /// The reading of its monotonic clock, in nanoseconds, when the ping with this number arrived.
    Pong(u32, u64),
    /// The worker's live counters.
    Progress(Counters),
    /// Time series.
    Samples(Vec<Sample>),
    /// Texts of requests.
    Texts(Vec<TextRow>),
    /// The worker has sent everything.
    Done(Box<Facts>),
    /// The worker cannot continue.
    Failed(Failed),
}

/// The serialized form of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// Contents are being prepared.
    Prepared,
    /// Connections are open.
    Opened,
    /// The clock of the run has started, this many nanoseconds late.
    Began(u64),
    /// All requests of the worker in the window have ended.
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
    /// Index of the phase.
    pub(super) phase: u8,
    /// Nanoseconds since the run's start.
    pub(super) elapsed_ns: u64,
    /// Start and end of the window.
    pub(super) window_ns: [u64; 2],
    /// Requests in flight.
    pub(super) in_flight: u64,
    /// Requests scheduled in the window so far.
    pub(super) in_window: u64,
    /// Token events received.
    pub(super) token_events: u64,
    /// Other signs of life.
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
