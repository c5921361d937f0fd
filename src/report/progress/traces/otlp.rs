//! Encodes spans as OTLP, in protobuf or JSON. The message types are from `opentelemetry-proto`, where they
//! are generated from OpenTelemetry's own definitions.
//!
//! Evaluated in November 2026: with `default-features = false` and without `tonic`, `opentelemetry-proto`
//! 0.33 adds eight new crates and no client. `opentelemetry-otlp` 0.33 adds three more crates and handles
//! batching, retries and shutdown itself. Spans are sent by our own code (`export`), whose tests ensure that
//! a collector that is absent, slow or unresponsive does not affect a sweep.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Message, Status};
use prost::Message as _;

use super::span::{Attribute, Batch, SCOPE, Span, SpanEvent, Value};

/// Returns the body of a request as protobuf.
pub(super) fn protobuf(batch: &Batch) -> Vec<u8> {
    request(batch).encode_to_vec()
}

/// Returns the body of a request as JSON.
///
/// # Errors
/// If JSON cannot represent the message; this never happens.
pub(super) fn json(batch: &Batch) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&request(batch))
}

fn request(batch: &Batch) -> ExportTraceServiceRequest {
    let [name, version] = SCOPE.map(str::to_owned);
    let scope = InstrumentationScope { name, version, ..InstrumentationScope::default() };
    let spans = batch.spans.iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
    let resource = Resource { attributes: attributes(batch.resource), ..Resource::default() };
    let resource_spans = ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

fn span(span: &Span) -> Message {
    let failed = |why: &String| Status { message: why.clone(), code: StatusCode::Error.into() };
    Message {
        trace_id: span.trace.into(),
        span_id: span.id.into(),
        parent_span_id: span.parent.map(Vec::from).unwrap_or_default(),
        name: span.name.clone(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: span.start_ns,
        end_time_unix_nano: span.end_ns,
        attributes: attributes(&span.attributes),
        events: span.events.iter().map(event).collect(),
        status: Some(span.error.as_ref().map(failed).unwrap_or_default()),
        ..Message::default()
    }
}

fn event(event: &SpanEvent) -> Event {
    Event {
        time_unix_nano: event.at_ns,
        name: event.name.to_owned(),
        attributes: attributes(&event.attributes),
        ..Event::default()
    }
}

fn attributes(attributes: &[Attribute]) -> Vec<KeyValue> {
    let pair = |(key, value): &Attribute| KeyValue { key: key.clone(), value: Some(any(value)), ..KeyValue::default() };
    attributes.iter().map(pair).collect()
}

fn any(value: &Value) -> AnyValue {
    let text = |text: &String| any_value::Value::StringValue(text.clone());
    let value = match value {
        Value::Text(one) => text(one),
        Value::Int(int) => any_value::Value::IntValue(*int),
        Value::Double(double) => any_value::Value::DoubleValue(*double),
        Value::Texts(texts) => {
            let values = texts.iter().map(|one| AnyValue { value: Some(text(one)) }).collect();
            any_value::Value::ArrayValue(ArrayValue { values })
        }
    };
    AnyValue { value: Some(value) }
}
