//! Measures one load. The mock runs in a separate process, and the engine sends the load as in any run.
//! Then the rows are compared with the mock's log.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::analysis::Events;
use crate::analysis::calibration::{Cost, Errors, MockPace, Pressure, Stamps, read_log};
use crate::engine::{self, EngineError, Job, Progress, SampleSink, SinkError};
use crate::rows::{Journal, Records, Replay, RunLabels, Sample, read_journal};
use crate::server::Embedded;
use crate::sweep::perform::{JournalSink, check, question};
use crate::units::{Nanos, NonceSeed};
use crate::workload::NonceKey;

use super::load::CalibrationLoad;

/// The prefix of the `x-request-id` of every request.
const PREFIX: &str = "calibrate";

/// The measurement of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// The load.
    pub load: CalibrationLoad,
    /// Length of the measure window in seconds.
    pub(crate) window_s: f64,
    /// How heavy the load on the generator actually was.
    pub pressure: Pressure,
    /// The errors of the generator's measurements.
    pub errors: Errors,
    /// The CPU time and other costs of the generator.
    pub cost: Cost,
    /// The source of timestamps.
    pub stamps: Stamps,
}

/// Why a load was not measured.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The calibration was stopped.
    Stopped,
    /// No request fell into the measure window.
    Empty,
    /// The measurement failed; the string gives the reason. Other loads may still be measured.
    Failed(String),
}

impl<E: std::error::Error> From<E> for Trouble {
    fn from(error: E) -> Trouble {
        Trouble::Failed(error.to_string())
    }
}

/// Measures one load. The rows and the mock's log are stored in `folder` during the measurement.
pub(super) fn measure(
    load: &CalibrationLoad,
    at_least: Nanos,
    folder: &Path,
    stop: &watch::Receiver<bool>,
) -> Result<Measured, Trouble> {
    let (journal, log) = (folder.join("journal.arrow"), folder.join("mock.jsonl"));
    for path in [&journal, &log] {
        if path.exists() {
            std::fs::remove_file(path)?;
        }
    }
    let mock = Embedded::with_log(&load.figures(), &log)?;
    let mut target = engine::Target::parse(mock.url())?;
    target.alive = Some(mock.alive());
    let spec = load.spec(at_least);
    let check = check(&question(&target, &spec));
    let job = Job {
        spec: Arc::new(spec),
        target,
        id_prefix: PREFIX.to_owned(),
        nonce_key: NonceKey::new(NonceSeed([0; 16])),
        tokenizer: None,
        trace: None,
        sink: Box::new(JournalSink::new(Journal::create(&journal, &RunLabels::default())?)),
        samples: Box::new(NoSamples),
        texts: None,
        check,
        part: None,
        virtual_time: false,
    };
    let finished = match engine::execute(job, Arc::new(Progress::default()), stop.clone()) {
        Ok(finished) => finished,
        Err(EngineError::Stopped) => return Err(Trouble::Stopped),
        Err(error) => return Err(error.into()),
    };
    mock.end()?;
    let (_, records) = read_journal(&journal)?;
    let run = Records::from_iter(records);
    let log = read_log(&std::fs::read_to_string(&log)?, PREFIX)?;
    let facts = &finished.facts;
    let Ok(events) = Events::of(&run, facts, &[]);
    let rows = run.rows();
    let errors = Errors::of(rows, &events, facts, &log, MockPace { ttft: load.ttft, itl: load.itl });
    let pressure = Pressure::of(rows, &events, facts).filter(|_| errors.requests > 0).ok_or(Trouble::Empty)?;
    Ok(Measured {
        load: load.clone(),
        window_s: facts.windows.measure_secs(),
        pressure,
        errors,
        cost: Cost::of(rows, facts),
        stamps: Stamps::of(rows, facts, &log),
    })
}

/// A sink that discards samples, because a calibration keeps no time series.
struct NoSamples;

impl SampleSink for NoSamples {
    fn append(&mut self, _: &[Sample]) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<u64, SinkError> {
        Ok(0)
    }
}
