//! What the program must know of a protocol: all of it, in one place.

use std::fmt;

use serde_json::Value;

use super::answer::{CallPiece, Part, Wrong};
use super::request::{Object, Request};

/// How a server counts a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// As a chat: messages in the model's template.
    Chat,
    /// As a text, with what opens every prompt.
    Text,
}

/// What a server is asked to do, which decides what a request says, and which latencies and rates there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// A prompt is answered by tokens, one after the other.
    Generate,
    /// Texts become vectors, all at once.
    Embed,
    /// Documents are scored for a query, all at once.
    Rank,
}

/// A protocol: where its requests go, what they look like, and how its answers are read.
pub trait Protocol: fmt::Debug + Sync {
    /// The path of its requests, behind the base address.
    fn path(&self) -> &'static str;

    /// How its prompts are counted.
    fn framing(&self) -> Framing;

    /// What it asks for.
    fn task(&self) -> Task {
        Task::Generate
    }

    /// The fields of a body that hold what is said.
    fn prompt_fields(&self) -> &'static [&'static str];

    /// The field that every whole answer has: a list.
    fn answer_field(&self) -> &'static str;

    /// Writes the fields of a body, in their order.
    fn body(&self, request: &Request, body: &mut Object);

    /// Whether events of this name belong to the answer. The end of a stream and errors are looked at before.
    fn takes_event(&self, name: &[u8]) -> bool {
        name.is_empty() || name == b"message"
    }

    /// Reads the data of one event.
    ///
    /// # Errors
    /// What is no such data, or reports an error.
    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong>;

    /// Reads a whole answer that was not streamed.
    ///
    /// # Errors
    /// What is no such answer, or reports an error.
    fn whole<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        self.event(data)
    }

    /// The tool calls in an event or a whole answer.
    fn calls(&self, _data: &Value) -> Vec<CallPiece> {
        Vec::new()
    }
}
