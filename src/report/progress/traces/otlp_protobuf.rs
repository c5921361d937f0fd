//! Spans as OTLP protobuf: the fields of `opentelemetry/proto/trace/v1/trace.proto` and its imports, from
//! `opentelemetry-proto` 1.x. Only four messages are written and none is read, which does not justify a
//! code generator.

use super::span::{Attribute, Batch, ERROR, INTERNAL, SCOPE, Span, SpanEvent, Value};

/// The body of a request: `ExportTraceServiceRequest`.
pub(super) fn encode(batch: &Batch) -> Vec<u8> {
    let mut scope_spans = Message::default();
    let [name, version] = SCOPE;
    scope_spans.message(1, Message::default().text(1, name).text(2, version));
    batch.spans.iter().for_each(|one| _ = scope_spans.message(2, &span(one)));
    let mut resource_spans = Message::default();
    resource_spans.message(1, &attributes(Message::default(), 1, batch.resource)).message(2, &scope_spans);
    let mut request = Message::default();
    request.message(1, &resource_spans);
    request.0
}

fn span(span: &Span) -> Message {
    let mut message = Message::default();
    message.bytes(1, &span.trace).bytes(2, &span.id);
    if let Some(parent) = &span.parent {
        message.bytes(4, parent);
    }
    message.text(5, &span.name).varint(6, INTERNAL.into()).fixed64(7, span.start_ns).fixed64(8, span.end_ns);
    let mut message = attributes(message, 9, &span.attributes);
    span.events.iter().for_each(|one| _ = message.message(11, &event(one)));
    if let Some(why) = &span.error {
        message.message(15, Message::default().text(2, why).varint(3, ERROR.into()));
    }
    message
}

fn event(event: &SpanEvent) -> Message {
    let mut message = Message::default();
    message.fixed64(1, event.at_ns).text(2, event.name);
    attributes(message, 3, &event.attributes)
}

/// Adds attributes, as `KeyValue`.
fn attributes(mut message: Message, field: u32, attributes: &[Attribute]) -> Message {
    for (key, value) in attributes {
        message.message(field, Message::default().text(1, key).message(2, &any(value)));
    }
    message
}

/// `AnyValue`: one of its alternatives is written even if it is empty or 0.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    match value {
        Value::Text(text) => message.text(1, text),
        // Two's complement, as protobuf encodes negative numbers.
        Value::Int(int) => message.varint(3, *int as u64),
        Value::Double(double) => message.fixed64(4, double.to_bits()),
        Value::Texts(texts) => {
            let mut array = Message::default();
            texts.iter().for_each(|text| _ = array.message(1, Message::default().text(1, text)));
            message.message(5, &array)
        }
    };
    message
}

/// A message being built, in protobuf's wire format.
#[derive(Default)]
struct Message(Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: u32) {
        self.raw_varint(u64::from(field << 3 | wire));
    }

    fn varint(&mut self, field: u32, value: u64) -> &mut Message {
        self.tag(field, VARINT);
        self.raw_varint(value);
        self
    }

    fn fixed64(&mut self, field: u32, value: u64) -> &mut Message {
        self.tag(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Message {
        self.tag(field, LENGTH);
        self.raw_varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn text(&mut self, field: u32, text: &str) -> &mut Message {
        self.bytes(field, text.as_bytes())
    }

    fn message(&mut self, field: u32, message: &Message) -> &mut Message {
        self.bytes(field, &message.0)
    }
}
