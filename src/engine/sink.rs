//! The interfaces to the destinations of rows, time series and texts.

use crate::rows::{Record, Sample, TextRow};

/// Why a sink cannot accept data.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// Receives the records of requests and writes them.
pub trait Sink: Send {
    /// Takes the next records. Not called again after an error.
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError>;
    /// Completes the output after the last record.
    fn finish(self: Box<Self>) -> Result<(), SinkError>;
}

/// Receives the samples of time series and writes them.
pub trait SampleSink: Send {
    /// Takes the next samples, in the order of their times. Not called again after an error.
    fn append(&mut self, samples: &[Sample]) -> Result<(), SinkError>;
    /// Completes the output after the last sample. Returns the number of samples.
    fn finish(self: Box<Self>) -> Result<u64, SinkError>;
}

/// Receives the texts of requests and writes them.
pub trait TextSink: Send {
    /// Takes the texts of the next requests. Not called again after an error.
    fn append(&mut self, texts: &[TextRow]) -> Result<(), SinkError>;
    /// Completes the output after the last text. Returns the number of text rows.
    fn finish(self: Box<Self>) -> Result<u64, SinkError>;
}
