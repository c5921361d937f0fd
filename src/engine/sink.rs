//! The destinations of rows, time series and texts.

use crate::rows::{Record, Sample, TextRow};

/// Why a sink cannot accept rows.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// The destination of rows.
pub trait Sink: Send {
    /// Takes some records. Not called again after an error.
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError>;
    /// Ends the records.
    fn finish(self: Box<Self>) -> Result<(), SinkError>;
}

/// The destination of time series.
pub trait SampleSink: Send {
    /// Takes some samples, in the order in which they were taken. Not called again after an error.
    fn append(&mut self, samples: &[Sample]) -> Result<(), SinkError>;
    /// Ends the samples; returns their number.
    fn finish(self: Box<Self>) -> Result<u64, SinkError>;
}

/// The destination of texts.
pub trait TextSink: Send {
    /// Takes the texts of some requests. Not called again after an error.
    fn append(&mut self, texts: &[TextRow]) -> Result<(), SinkError>;
    /// Ends the texts; returns their number.
    fn finish(self: Box<Self>) -> Result<u64, SinkError>;
}
