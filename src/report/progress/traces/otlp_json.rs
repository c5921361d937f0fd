//! Spans as OTLP JSON: `opentelemetry-proto` 1.x, `ExportTraceServiceRequest` by the rules of *OTLP/HTTP,
//! JSON Protobuf Encoding*: ids are hex digits, 64-bit integers are strings, enumerations are numbers.

use serde_json::{Value as Json, json};

use super::span::{Attribute, Batch, ERROR, INTERNAL, SCOPE, Span, SpanEvent, Value};
use crate::units::text::hex;

/// The body of a request.
pub(super) fn encode(batch: &Batch) -> Vec<u8> {
    let [name, version] = SCOPE;
    let spans: Vec<Json> = batch.spans.iter().map(span).collect();
    let scope = json!({ "scope": { "name": name, "version": version }, "spans": spans });
    let resource = json!({ "attributes": attributes(batch.resource) });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [scope] }] }).to_string().into_bytes()
}

fn span(span: &Span) -> Json {
    let mut json = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes(&span.attributes),
        "events": span.events.iter().map(event).collect::<Vec<_>>(),
        "status": span.error.as_ref().map_or_else(|| json!({}), |why| json!({ "message": why, "code": ERROR })),
    });
    if let Some(parent) = &span.parent {
        json["parentSpanId"] = hex(parent).into();
    }
    json
}

fn event(event: &SpanEvent) -> Json {
    json!({
        "timeUnixNano": event.at_ns.to_string(),
        "name": event.name,
        "attributes": attributes(&event.attributes),
    })
}

fn attributes(attributes: &[Attribute]) -> Vec<Json> {
    attributes.iter().map(|(key, value)| json!({ "key": key, "value": any(value) })).collect()
}

fn any(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Int(int) => json!({ "intValue": int.to_string() }),
        Value::Double(double) => json!({ "doubleValue": double }),
        Value::Texts(texts) => {
            let values: Vec<Json> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}
