//! The interface that every protocol implements.

use std::fmt;

use serde_json::Value;

use super::answer::{CallPiece, Part, Wrong};
use super::headers::{KeyHeader, RequestHeader};
use super::request::{Object, Request};
use super::usage::Usage;

/// How a server counts the tokens of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// As a chat: messages in the model's template.
    Chat,
    /// As plain text, including the tokens that begin every prompt.
    Text,
}

/// The task of a server. It determines the content of requests, and which latencies and rates exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The response to a prompt is a sequence of tokens.
    Generate,
    /// Texts are converted to vectors, all at once.
    Embed,
    /// Documents are scored for a query, all at once.
    Rank,
}

/// A protocol: where requests are sent, what they contain, and how responses are read.
pub trait Protocol: fmt::Debug + Sync {
    /// Returns the path of requests, relative to the base URL.
    fn path(&self) -> &'static str;

    /// Returns how servers count the tokens of prompts.
    fn framing(&self) -> Framing;

    /// Returns the task of servers with this protocol.
    fn task(&self) -> Task {
        Task::Generate
    }

    /// Returns the names of the body's fields that contain the prompt.
    fn prompt_fields(&self) -> &'static [&'static str];

    /// Returns the name of the list that every whole response contains.
    fn answer_field(&self) -> &'static str;

    /// Returns the header that carries the API key.
    fn key_header(&self) -> KeyHeader {
        KeyHeader::BEARER
    }

    /// Returns the name, in lower case, and the value of the header that states the version of the API; `None`
    /// if there is no such header.
    fn version_header(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns the headers that this protocol requires in every request: the version of the API, and the `key`
    /// if there is one.
    fn headers(&self, key: Option<&str>) -> Vec<RequestHeader> {
        let key = key.map(|key| self.key_header().with(key));
        let version = self.version_header().map(|(name, value)| RequestHeader::public(name, value));
        key.into_iter().chain(version).collect()
    }

    /// Returns the parameters of plans that requests of this API do not have.
    fn lacks(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the additional fields that requests of this API may have; `None` if this depends on the server's
    /// engine.
    fn extra_fields(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Returns the name of the body's field for the stop sequences.
    fn stop_field(&self) -> &'static str {
        "stop"
    }

    /// Writes the fields of `request` to `body`, in order.
    fn body(&self, request: &Request, body: &mut Object);

    /// Whether events with this name belong to the response, so that their data must be valid. Events with another
    /// name are read if they can be. The end of a stream and error events never reach this function.
    fn takes_event(&self, name: &[u8]) -> bool {
        const NAMES: [&[u8]; 10] = [
            b"",
            b"message",
            b"chunk",
            b"completion",
            b"token",
            b"delta",
            b"data",
            b"chat.completion.chunk",
            b"completion.chunk",
            b"text_completion",
        ];
        NAMES.contains(&name)
    }

    /// Reads the data of one event.
    ///
    /// # Errors
    /// Fails if the data is not a valid event, or if it reports an error.
    fn event<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong>;

    /// Reads a whole response that was not streamed.
    ///
    /// # Errors
    /// Fails if the data is not a valid response, or if it reports an error.
    fn whole<'a>(&self, data: &'a [u8]) -> Result<Part<'a>, Wrong> {
        let part = self.event(data)?;
        if part.is_unread {
            let text = String::from_utf8_lossy(data);
            return Err(Wrong::Malformed(format!("neither {} nor usage nor error: {text}", self.answer_field())));
        }
        Ok(part)
    }

    /// Returns the name of the event without which a stream is incomplete; `None` if a finish reason or the usage
    /// also completes it.
    fn end_event(&self) -> Option<&'static str> {
        None
    }

    /// Reads the token counts in the `usage` of a response.
    fn usage(&self, usage: &Value) -> Usage {
        Usage::of(usage)
    }

    /// Returns the tool calls in an event or a whole response.
    fn calls(&self, _data: &Value) -> Vec<CallPiece> {
        Vec::new()
    }
}
