//! The destinations of a worker's rows, time series and texts, which are sent to the coordinator as
//! frames.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{SampleSink, Sink, SinkError, TextSink};
use crate::rows::{Record, RecordEncoder, Sample, TextRow};

use super::frame::{self, Kind};
use super::message::FromWorker;

/// The worker's standard output.
#[derive(Clone)]
pub(super) struct Output(Arc<Mutex<File>>);

impl Output {
    /// Opens the standard output.
    pub(super) fn open() -> io::Result<Output> {
        Ok(Output(Arc::new(Mutex::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)))))
    }

    /// Sends a message.
    pub(super) fn tell(&self, message: &FromWorker) -> io::Result<()> {
        self.send(Kind::Message, &serde_json::to_vec(message).map_err(io::Error::other)?)
    }

    fn send(&self, kind: Kind, content: &[u8]) -> io::Result<()> {
        frame::write(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), kind, content)
    }
}

/// Sends records.
pub(super) struct RecordsOut {
    encoder: RecordEncoder,
    output: Output,
}

impl RecordsOut {
    /// Creates the sink.
    pub(super) fn new(output: Output) -> Result<RecordsOut, SinkError> {
        Ok(RecordsOut { encoder: RecordEncoder::new()?, output })
    }
}

impl Sink for RecordsOut {
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError> {
        if records.is_empty() {
            return Ok(());
        }
        Ok(self.output.send(Kind::Records, &self.encoder.encode(records)?)?)
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Sends time series.
pub(super) struct SamplesOut {
    output: Output,
    count: u64,
}

impl SamplesOut {
    /// Creates the sink.
    pub(super) fn new(output: Output) -> SamplesOut {
        SamplesOut { output, count: 0 }
    }
}

impl SampleSink for SamplesOut {
    fn append(&mut self, samples: &[Sample]) -> Result<(), SinkError> {
        // JSON cannot represent numbers that are not finite.
        let finite: Vec<Sample> = samples.iter().filter(|sample| sample.value.is_finite()).cloned().collect();
        self.count += finite.len() as u64;
        Ok(self.output.tell(&FromWorker::Samples(finite))?)
    }

    fn finish(self: Box<Self>) -> Result<u64, SinkError> {
        Ok(self.count)
    }
}

/// Sends texts.
pub(super) struct TextsOut {
    output: Output,
    count: u64,
}

impl TextsOut {
    /// Creates the sink.
    pub(super) fn new(output: Output) -> TextsOut {
        TextsOut { output, count: 0 }
    }
}

impl TextSink for TextsOut {
    fn append(&mut self, texts: &[TextRow]) -> Result<(), SinkError> {
        self.count += texts.len() as u64;
        Ok(self.output.tell(&FromWorker::Texts(texts.to_vec()))?)
    }

    fn finish(self: Box<Self>) -> Result<u64, SinkError> {
        Ok(self.count)
    }
}
