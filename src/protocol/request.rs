//! A request before it is encoded, and the JSON object that it becomes.

use serde::Serialize;

use super::said::Said;

/// The content of a body, independent of the protocol.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The model id on the server.
    pub model: &'a str,
    /// The texts of the request.
    pub said: Said<'a>,
    /// Number of requested tokens.
    pub output_tokens: u32,
    /// The name of the field for the number of requested tokens, if the protocol has several.
    pub(crate) length_field: &'static str,
    /// Whether the response is streamed token by token; if so, the request also asks the server for its
    /// `usage`.
    pub stream: bool,
    /// Whether `ignore_eos: true` is sent.
    pub ignore_eos: bool,
    /// Sampling parameters.
    pub sampling: &'a [Field],
    /// Texts at which the response ends.
    pub stop: &'a [String],
    /// Further fields, which come at the end.
    pub extra: &'a [Field],
}

impl<'a> Request<'a> {
    /// Creates a request with one text and this many tokens, without streaming.
    pub fn plain(model: &'a str, text: &'a str, output_tokens: u32) -> Request<'a> {
        Request {
            model,
            said: Said::alone(text),
            output_tokens,
            length_field: "max_tokens",
            stream: false,
            ignore_eos: false,
            sampling: &[],
            stop: &[],
            extra: &[],
        }
    }
}

/// A field that is the same in every request of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    name: String,
    /// The field as JSON.
    value: String,
}

impl Field {
    /// Creates a field with its value.
    pub fn new(name: &str, value: &impl Serialize) -> Field {
        let value = serde_json::to_string(value).expect("values in a plan have only JSON's types");
        Field { name: name.to_owned(), value }
    }
}

/// A JSON object that is written field by field, in order.
#[derive(Debug)]
pub struct Object {
    bytes: Vec<u8>,
}

impl Object {
    /// Creates an object with room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Object {
        let mut bytes = Vec::with_capacity(bytes);
        bytes.push(b'{');
        Object { bytes }
    }

    /// Appends a field.
    pub fn put(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.name(name);
        serde_json::to_writer(&mut self.bytes, value)
            .expect("a Vec accepts every byte, and requests have only JSON's types");
    }

    /// Appends fields that are already JSON.
    pub(crate) fn put_all(&mut self, fields: &[Field]) {
        for Field { name, value } in fields {
            self.name(name);
            self.bytes.extend_from_slice(value.as_bytes());
        }
    }

    fn name(&mut self, name: &str) {
        if self.bytes.len() > 1 {
            self.bytes.push(b',');
        }
        serde_json::to_writer(&mut self.bytes, name).expect("a Vec accepts every byte");
        self.bytes.push(b':');
    }

    /// Returns its bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(b'}');
        self.bytes
    }
}
