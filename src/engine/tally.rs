//! What is known of one request so far, event by event; becomes its row whenever it ends.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::rows::{Outcome, Record, RequestRow, TokenSource};

use super::answer::{Body, Usage, Wrong};
use super::sse::Event;

/// Why a request did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The outcome of its row.
    pub outcome: Outcome,
    /// What went wrong, in words.
    pub text: String,
}

impl Failure {
    /// A failure with its words.
    pub fn new(outcome: Outcome, text: impl Into<String>) -> Failure {
        Failure { outcome, text: text.into() }
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Malformed(text) => Failure::new(Outcome::Malformed, text),
            Wrong::Error(text) => Failure::new(Outcome::StreamError, text),
        }
    }
}

/// One request under way.
#[derive(Debug)]
pub struct Tally {
    /// Its row so far.
    pub row: RequestRow,
    gaps_ns: Vec<u64>,
    content: String,
    reasoning: String,
    usage: Option<Usage>,
    /// `[DONE]` came.
    marked_done: bool,
    /// When the last byte of the body came: the place that the request held is free.
    freed: Option<u64>,
}

impl Tally {
    /// Nothing has come yet.
    pub fn new(row: RequestRow) -> Tally {
        let expected = row.requested_tokens as usize;
        Tally {
            row,
            gaps_ns: Vec::with_capacity(expected.min(4096)),
            content: String::new(),
            reasoning: String::new(),
            usage: None,
            marked_done: false,
            freed: None,
        }
    }

    /// Takes one event of the stream that arrived at `at`. True when it carried text.
    pub fn event(&mut self, event: &Event, at: u64) -> Result<bool, Failure> {
        if self.marked_done {
            return Ok(false);
        }
        self.row.first_chunk_ns.get_or_insert(at);
        match event.name {
            b"" | b"message" | b"error" => {}
            // Frames of another kind (SGLang's sglext_ids) are not part of the answer.
            _ => return Ok(false),
        }
        if event.data.trim_ascii() == b"[DONE]" {
            self.marked_done = true;
            self.row.done_ns = Some(at);
            return Ok(false);
        }
        if event.name == b"error" {
            // Whatever its data looks like: some servers send a plain sentence.
            let text = super::answer::server_words(event.data);
            return Err(Failure::new(Outcome::StreamError, text));
        }
        let body = Body::parse(event.data)?;
        self.note(&body);
        let (content, reasoning) = (body.content(), body.reasoning());
        let is_output = !content.is_empty() || body.has_tool_call();
        if !is_output && reasoning.is_empty() {
            return Ok(false);
        }
        self.content.push_str(content);
        self.reasoning.push_str(reasoning);
        self.token_event(at, is_output);
        Ok(true)
    }

    /// Takes a whole answer that was not streamed.
    pub fn whole(&mut self, data: &[u8], at: u64) -> Result<(), Failure> {
        let body = Body::parse(data)?;
        self.note(&body);
        self.content.push_str(body.content());
        self.reasoning.push_str(body.reasoning());
        self.row.done_ns = Some(at);
        self.freed = Some(at);
        if self.content.is_empty() && self.reasoning.is_empty() && !body.has_tool_call() {
            return Err(Failure::new(Outcome::Empty, "a whole answer without text"));
        }
        Ok(())
    }

    fn note(&mut self, body: &Body) {
        if let Some(usage) = body.usage() {
            self.usage = Some(usage);
        }
        if let Some(reason) = body.finish_reason() {
            self.row.finish_reason = Some(reason.to_owned());
        }
    }

    fn token_event(&mut self, at: u64, is_output: bool) {
        if let Some(last) = self.row.last_token_ns {
            self.gaps_ns.push(at - last);
        }
        self.row.first_token_ns.get_or_insert(at);
        if is_output {
            self.row.first_output_ns.get_or_insert(at);
        }
        self.row.last_token_ns = Some(at);
        self.row.events += 1;
    }

    /// Whether `[DONE]` came.
    pub fn is_marked_done(&self) -> bool {
        self.marked_done
    }

    /// The stream's body ended cleanly at `at`: says whether the answer is whole.
    pub fn ended(&mut self, at: u64) -> Result<(), Failure> {
        self.freed = Some(at);
        let whole = self.marked_done || self.row.finish_reason.is_some() || self.usage.is_some();
        if self.row.events == 0 && (whole || self.row.first_chunk_ns.is_none()) {
            self.row.done_ns.get_or_insert(at);
            return Err(Failure::new(Outcome::Empty, "the stream ended without any text"));
        }
        if !whole {
            return Err(Failure::new(Outcome::Reset, "the stream ended before its finish reason, usage or [DONE]"));
        }
        self.row.done_ns.get_or_insert(at);
        Ok(())
    }

    /// When the last byte of the body came, if it did.
    pub fn freed(&self) -> Option<u64> {
        self.freed
    }

    /// The record of a request that ended like this.
    pub fn finish(mut self, result: Result<(), Failure>) -> (Record, String) {
        match result {
            Ok(()) => self.row.outcome = Outcome::Ok,
            Err(failure) => {
                self.row.outcome = failure.outcome;
                self.row.error = Some(failure.text);
            }
        }
        self.count_tokens();
        self.row.text_digest = self.digest();
        (Record { row: self.row, gaps_ns: self.gaps_ns }, self.content)
    }

    fn count_tokens(&mut self) {
        let row = &mut self.row;
        if let Some(usage) = self.usage {
            row.prompt_tokens = usage.prompt_tokens;
            row.cached_tokens = usage.cached_tokens();
            row.reasoning_tokens = usage.reasoning_tokens();
        }
        let counted = self.usage.and_then(|usage| usage.completion_tokens);
        (row.output_tokens, row.token_source) = match counted {
            Some(tokens) => (Some(tokens), Some(TokenSource::Usage)),
            None if row.events > 0 => (Some(row.events), Some(TokenSource::Events)),
            None => (None, None),
        };
    }

    fn digest(&self) -> Option<String> {
        if self.content.is_empty() && self.reasoning.is_empty() {
            return None;
        }
        let hash = Sha256::new().chain_update(&self.content).chain_update(&self.reasoning).finalize();
        Some(hash.iter().take(8).fold(String::with_capacity(16), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        }))
    }
}
