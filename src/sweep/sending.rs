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

/// A run that is ready to be sent.
pub(super) struct Sending<'s> {
    /// The run.
    pub run: &'s PlannedRun,
    /// The attempt at the run.
    pub attempt: &'s Attempt,
    /// The endpoint of the run in the plan, whose credentials workers read themselves.
    pub endpoint: &'s Endpoint,
    /// The folder of the plan.
    pub folder: &'s Path,
    /// The destination of requests.
    pub target: Target,
    /// The readiness path of the server, if it has one.
    pub ready: Option<String>,
    /// Counts tokens, if the run counts them.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// The tokenizers' files, for workers.
    pub tokenizers: &'s Tokenizers,
    /// The start command of each worker; empty if this process sends the load alone.
    pub starts: Vec<StartCommand>,
    /// The destination of rows.
    pub sink: Box<dyn Sink>,
    /// The destination of time series.
    pub samples: Box<dyn SampleSink>,
    /// The destination of texts, if they are recorded.
    pub texts: Option<Box<dyn TextSink>>,
    /// The check of the server during the run.
    pub check: engine::Check,
}

impl Sending<'_> {
    /// Sends the load, until the run ends or `stop` turns true.
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
