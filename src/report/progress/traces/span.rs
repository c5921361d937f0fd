//! Spans in OpenTelemetry's data model.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::units::NonceSeed;

/// The id of a trace: 16 random bytes.
pub(super) type TraceId = [u8; 16];
/// The id of a span: 8 bytes that are unique within the trace.
pub(super) type SpanId = [u8; 8];

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Int(i64),
    Double(f64),
    Texts(Vec<String>),
}

/// An attribute: its name and its value.
pub(super) type Attribute = (String, Value);

/// An event within a span.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpanEvent {
    pub(super) at_ns: u64,
    pub(super) name: &'static str,
    pub(super) attributes: Vec<Attribute>,
}

/// A span. Times are nanoseconds since 1970; while the span is open, its end equals its start.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) attributes: Vec<Attribute>,
    pub(super) events: Vec<SpanEvent>,
    /// The error of the span; `None` if it did not fail.
    pub(super) error: Option<String>,
}

/// Spans with the attributes of the resource that created them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Batch<'a> {
    pub(super) resource: &'a [Attribute],
    pub(super) spans: &'a [Span],
}

/// The name and version of the instrumentation scope.
pub(super) const SCOPE: [&str; 2] = ["sweepline", env!("CARGO_PKG_VERSION")];

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }
}

/// Returns the current wall-clock time, in nanoseconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Returns a new trace id.
///
/// # Errors
/// If the system cannot provide random bits.
pub(super) fn trace_id() -> std::io::Result<TraceId> {
    Ok(NonceSeed::random()?.0)
}

/// Returns the id of span number `n` of a trace, which is unique within the trace and never 0.
pub(super) fn span_id(seed: SpanId, n: u64) -> SpanId {
    let id = u64::from_be_bytes(seed).wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    id.max(1).to_be_bytes()
}
