//! The complete interface of a protocol.

use std::fmt;

use serde_json::Value;

use super::answer::{CallPiece, Part, Wrong};
use super::request::{Object, Request};

/// How a server counts a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// As a chat: messages in the model's template.
    Chat,
    /// As a text, including the tokens with which every prompt begins.
    Text,
}

/// The task of a server. It determines the content of requests and the latencies and rates that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The response to a prompt is a sequence of tokens.
    Generate,
    /// Texts are converted to vectors, all at once.
    Embed,
    /// Documents are scored for a query, all at once.
    Rank,
}

/// A protocol: the destination and form of its requests, and how its responses are read.
pub trait Protocol: fmt::Debug + Sync {
    /// Returns the path of its requests, after the base address.
    fn path(&self) -> &'static str;

    /// Returns how its prompts are counted.
    fn framing(&self) -> Framing;

    /// Returns its task.
    fn task(&self) -> Task {
        Task::Generate
    }

    /// Returns the fields of a body that contain the prompt.
    fn prompt_fields(&self) -> &'static [&'static str];

    /// Returns the name of a list that every whole response has.
    fn answer_field(&self) -> &'static str;

    /// Writes the fields of a body, in their order.
    fn body(&self, request: &Request, body: &mut Object);

    /// Whether events with this name belong to the response. The end of a stream and errors are handled
    /// earlier.
    fn takes_event(&self, name: &[u8]) -> bool {
        name.is_empty() || name == b"message"
    }

    /// Reads the data of one event.
    ///
    /// # Errors The data is not a valid event, or reports an error.
    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong>;

    /// Reads a whole response that was not streamed.
    ///
    /// # Errors The data is not a valid response, or reports an error.
    fn whole<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        self.event(data)
    }

    /// Returns the tool calls in an event or a whole response.
    fn calls(&self, _data: &Value) -> Vec<CallPiece> {
        Vec::new()
    }
}
