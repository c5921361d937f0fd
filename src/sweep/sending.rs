//! Sends the load of a run, either from this process or from several workers.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use crate::engine::{self, EngineError, Finished, Job, Progress, SampleSink, Sink, Target, TextSink, Trace};
use crate::expand::PlannedRun;
use crate::plan::Endpoint;
use crate::store::Attempt;
use crate::workers::{self, Load, StartCommand};
use crate::workload::{NonceKey, Tokenizer};

use super::shared_load;
use super::tokenizers::Tokenizers;

/// All data that is needed to send the load of a run.
pub(super) struct Sending<'s> {
    /// The run.
    pub run: &'s PlannedRun,
    /// The attempt at the run.
    pub attempt: &'s Attempt,
    /// The endpoint of the run in the plan. Workers read its credentials themselves.
    pub endpoint: &'s Endpoint,
    /// The folder of the plan.
    pub folder: &'s Path,
    /// The destination of requests.
    pub target: Target,
    /// The readiness path of the server; `None` if it has none.
    pub ready: Option<String>,
    /// The tokenizer that counts tokens; `None` if the run has no tokenizer.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// The plan's tokenizers, whose files are sent to workers.
    pub tokenizers: &'s Tokenizers,
    /// The start command of each worker; empty if this process sends the load alone.
    pub starts: Vec<StartCommand>,
    /// The destination of rows.
    pub sink: Box<dyn Sink>,
    /// The destination of time series.
    pub samples: Box<dyn SampleSink>,
    /// The destination of texts; `None` if they are not recorded.
    pub texts: Option<Box<dyn TextSink>>,
    /// The check of the server during the run.
    pub check: engine::Check,
}

impl Sending<'_> {
    /// Sends the load until the run ends or `stop` becomes true.
    pub(super) fn send(self, progress: Arc<Progress>, stop: watch::Receiver<bool>) -> Result<Finished, EngineError> {
        match self.starts.len() {
            0 | 1 => self.send_alone(progress, stop),
            _ => self.send_by_workers(&progress, &stop),
        }
    }

    fn send_alone(self, progress: Arc<Progress>, stop: watch::Receiver<bool>) -> Result<Finished, EngineError> {
        let job = Job {
            spec: Arc::clone(&self.run.spec),
            target: self.target,
            id_prefix: shared_load::id_prefix(self.run, self.attempt),
            nonce_key: NonceKey::new(self.attempt.nonce_seed()),
            tokenizer: self.tokenizer,
            trace: Trace::of(&self.run.spec),
            sink: self.sink,
            samples: self.samples,
            texts: self.texts,
            check: self.check,
            part: None,
            // Scraped metrics are those of a real server.
            virtual_time: virtual_time_is_requested() && self.endpoint.telemetry.is_none(),
        };
        engine::execute(job, progress, stop)
    }

    fn send_by_workers(self, progress: &Progress, stop: &watch::Receiver<bool>) -> Result<Finished, EngineError> {
        let of_endpoint = (self.endpoint, &self.target, self.folder);
        let order = shared_load::order((self.run, self.attempt), of_endpoint, self.ready, self.tokenizers);
        let alive = self.target.alive.clone();
        let load = Load {
            order: order.map_err(EngineError::Workers)?,
            starts: self.starts,
            sink: self.sink,
            samples: self.samples,
            texts: self.texts,
            alive,
            redact: Box::new(move |text| self.target.redact(text)),
        };
        workers::execute(load, progress, stop)
    }
}

/// Whether runs on embedded mocks take place in virtual time. In builds with debug assertions,
/// `SWEEPLINE_VIRTUAL_TIME=1` requests this, for tests of everything behind the engine.
fn virtual_time_is_requested() -> bool {
    cfg!(debug_assertions) && std::env::var_os("SWEEPLINE_VIRTUAL_TIME").is_some_and(|value| value == "1")
}
