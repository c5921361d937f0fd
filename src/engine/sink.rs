//! Where rows, time series and texts go.

use crate::rows::{Record, Sample, TextRow};

/// Why a sink cannot take rows.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// Where rows go.
pub trait Sink: Send {
    /// Takes some records. After an error no more come.
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError>;
    /// All records have come.
    fn finish(self: Box<Self>) -> Result<(), SinkError>;
}

/// Where time series go.
pub trait SampleSink: Send {
    /// Takes some samples, in the order in which they were taken. After an error no more come.
    fn append(&mut self, samples: &[Sample]) -> Result<(), SinkError>;
    /// All samples have come; returns how many.
    fn finish(self: Box<Self>) -> Result<u64, SinkError>;
}

/// Where texts go.
pub trait TextSink: Send {
    /// Takes the texts of some requests. After an error no more come.
    fn append(&mut self, texts: &[TextRow]) -> Result<(), SinkError>;
    /// All texts have come; returns how many.
    fn finish(self: Box<Self>) -> Result<u64, SinkError>;
}
