//! The state of one request in flight, updated with every event. When the request ends, its row is created
//! from this state.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::protocol::{Channel, Part, Protocol, Timings, Usage, Wrong, server_words};
use crate::rows::{Limits, Outcome, Record, RequestRow, ServerTimes, Stamp, TokenSource};
use crate::units::Nanos;

use super::gaps::Gaps;
use super::io::Read;
use super::sse::Event;
use super::template::Template;
use super::transcripts::RequestTexts;

/// Bytes of text per token in most languages; used to estimate the size of a response's text.
const TOKEN_BYTES: usize = 5;
/// Maximum number of bytes that are reserved for a text before it arrives.
const MOST_ROOM: usize = 1024;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The outcome for the request's row.
    pub outcome: Outcome,
    /// The error as text.
    pub text: String,
    /// Details of the failure that the request's row does not contain, if any.
    pub aside: Option<Aside>,
}

/// Details of a failure that the request's row does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aside {
    /// The server requests a pause of this length.
    RetryAfter(Nanos),
    /// This machine's own limits prevented a connection.
    Local,
    /// No connection could be opened in time.
    Late,
}

impl Failure {
    /// Creates a failure with this text.
    pub(crate) fn new(outcome: Outcome, text: impl Into<String>) -> Failure {
        Failure { outcome, text: text.into(), aside: None }
    }

    /// Sets the details that the request's row does not contain.
    pub(crate) fn with(self, aside: Option<Aside>) -> Failure {
        Failure { aside, ..self }
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

/// The response to a request, as far as a conversation needs it for the next turn.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The response's content, without its reasoning.
    pub content: String,
    /// Number of tokens of the content, as counted by the server; `None` if the server did not report the
    /// number.
    pub tokens: Option<u32>,
}

/// The parameters of a request that are needed to judge its response.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asks {
    /// The size of the request body, in bytes.
    pub bytes: usize,
    /// The index of the request's class in the run, counted from 0.
    pub class: usize,
    /// Number of requested vectors or scores; 0 if text is requested.
    pub values: usize,
}

/// Whether the data of an event is `[DONE]`, which marks the end of the response.
fn says_done(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}

/// The state of one request in flight. Boxed, because it is moved many times.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The request's row so far.
    pub row: RequestRow,
    gaps: Gaps,
    template: Template,
    content: String,
    reasoning: String,
    usage: Option<Usage>,
    /// The times that the server has reported.
    times: ServerTimes,
    /// The protocol by which the response is parsed.
    protocol: &'static dyn Protocol,
    /// The request's parameters.
    asked: Asks,
    /// The first eight bytes of the SHA-256 of the response's text; `None` until the text is complete, or if
    /// there is no text.
    digest: Option<[u8; 8]>,
    /// Whether the end of the response has arrived: `[DONE]`, or the last event of the protocol.
    marked_done: bool,
    /// When the last byte of the body arrived, which freed the request's slot; `None` if it has not arrived.
    freed: Option<u64>,
    /// The recorded texts; `None` if the run does not record them.
    words: Option<Box<RequestTexts>>,
}

/// A finished request. Boxed, because it is moved many times.
#[derive(Debug)]
pub(crate) struct Entry(Box<Tally>);

impl Entry {
    /// Returns the request's row.
    pub(crate) fn row(&self) -> &RequestRow {
        &self.0.row
    }

    /// Unboxes the request for the writer thread. The thread that allocated the box also frees it here,
    /// because allocators are slow if one thread frees memory that another has allocated.
    pub(crate) fn unbox(self) -> Unwritten {
        let Tally { row, gaps, digest, words, .. } = *self.0;
        Unwritten { row, gaps, digest, words }
    }
}

/// A finished request that has not been written yet.
#[derive(Debug)]
pub(crate) struct Unwritten {
    row: RequestRow,
    gaps: Gaps,
    digest: Option<[u8; 8]>,
    words: Option<Box<RequestTexts>>,
}

impl Unwritten {
    /// Returns the size of the request's gaps and texts, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.gaps.size() + self.words.as_ref().map_or(0, |words| words.size())
    }

    /// Converts the request into a record for the file, and returns it with its texts, if they are
    /// recorded.
    pub(crate) fn into_record(self) -> (Record, Option<Box<RequestTexts>>) {
        let Unwritten { mut row, gaps, digest, words } = self;
        row.text_digest = digest.map(|digest| format!("{:016x}", u64::from_be_bytes(digest)));
        (Record { row, gaps_ns: gaps.to_vec() }, words)
    }
}

impl Tally {
    /// Creates the state of a request of which nothing has arrived yet.
    pub(crate) fn new(row: RequestRow, protocol: &'static dyn Protocol) -> Box<Tally> {
        let expected = row.requested_tokens as usize;
        Box::new(Tally {
            row,
            gaps: Gaps::with_room(expected),
            template: Template::default(),
            content: String::with_capacity((expected * TOKEN_BYTES).min(MOST_ROOM)),
            reasoning: String::new(),
            usage: None,
            times: ServerTimes::default(),
            protocol,
            asked: Asks::default(),
            digest: None,
            marked_done: false,
            freed: None,
            words: None,
        })
    }

    /// Sets the request's parameters, before its response begins.
    pub(crate) fn asks(&mut self, asked: Asks) {
        self.asked = asked;
    }

    /// Records how long the request waited for each step of opening a connection.
    pub(crate) fn opened(&mut self, dns: Option<u64>, connect: Option<u64>, tls: Option<u64>) {
        (self.row.dns_ns, self.row.connect_ns, self.row.tls_ns) = (dns, connect, tls);
    }

    /// Sets the times that the server reported in the head of the response.
    pub(crate) fn server_times(&mut self, told: ServerTimes) {
        self.times = told;
    }

    /// Returns the index of the request's class in the run, counted from 0.
    pub(crate) fn class(&self) -> usize {
        self.asked.class
    }

    /// Makes the tally record the texts of the request, whose body is `body`, and of its response.
    pub(crate) fn keep_texts(&mut self, body: Bytes) {
        self.words = Some(Box::new(RequestTexts::new(body)));
    }

    /// Processes one event of the stream, which arrived with `read`. Returns true if the event contained
    /// text.
    pub(crate) fn event(&mut self, event: &Event, read: Read) -> Result<bool, Failure> {
        if self.marked_done {
            return Ok(false);
        }
        self.row.first_chunk_ns.get_or_insert(read.at);
        if event.name == b"error" && !says_done(event.data) {
            // The data is not parsed as JSON here, because some servers send a plain sentence.
            return Err(Failure::new(Outcome::StreamError, server_words(event.data)));
        }
        // Events of another kind (such as SGLang's sglext_ids) are not part of the response.
        if event.name != b"error" && !self.protocol.takes_event(event.name) {
            return Ok(false);
        }
        if let Some((text, channel)) = self.template.read(event.data) {
            match channel {
                Channel::Content => self.content.push_str(text),
                Channel::Reasoning => self.reasoning.push_str(text),
            }
            self.token_event(read, channel == Channel::Content);
            return Ok(true);
        }
        if says_done(event.data) {
            self.is_done(read);
            return Ok(false);
        }
        self.parsed(event.data, read)
    }

    /// Parses an event completely, and learns its shape for later events.
    fn parsed(&mut self, data: &[u8], read: Read) -> Result<bool, Failure> {
        let part = self.protocol.event(data)?;
        self.note(&part);
        if let Some((text, channel)) = part.only_text() {
            self.template.learn(data, text, channel);
        }
        if let Some(words) = &mut self.words {
            words.take_calls(self.protocol, data);
        }
        let is_output = !part.content.is_empty() || part.has_tool_call;
        let is_text = is_output || !part.reasoning.is_empty();
        if is_text {
            self.content.push_str(&part.content);
            self.reasoning.push_str(&part.reasoning);
            self.token_event(read, is_output);
        }
        if part.is_last {
            self.is_done(read);
        }
        Ok(is_text)
    }

    /// Records that the response is complete; later events are ignored.
    fn is_done(&mut self, read: Read) {
        self.marked_done = true;
        self.row.done_ns = Some(read.at);
    }

    /// Processes a complete response that was not streamed.
    pub(crate) fn whole(&mut self, data: &[u8], at: u64) -> Result<(), Failure> {
        let part = self.protocol.whole(data)?;
        self.note(&part);
        self.content.push_str(&part.content);
        self.reasoning.push_str(&part.reasoning);
        if let Some(words) = &mut self.words {
            words.take_calls(self.protocol, data);
        }
        self.row.done_ns = Some(at);
        self.freed = Some(at);
        match part.values {
            Some(values) if values != self.asked.values => {
                let text = format!("{values} values for {} texts", self.asked.values);
                Err(Failure::new(Outcome::Malformed, text))
            }
            Some(_) => Ok(()),
            None if self.content.is_empty() && self.reasoning.is_empty() && !part.has_tool_call => {
                Err(Failure::new(Outcome::Empty, "a complete response without text"))
            }
            None => Ok(()),
        }
    }

    fn note(&mut self, part: &Part) {
        if let Some(usage) = part.usage {
            self.usage = Some(self.usage.map_or(usage, |earlier| earlier.updated(usage)));
        }
        if let Some(Timings { prefill_ns, decode_ns }) = part.timings {
            let told = ServerTimes { prefill_ns, decode_ns, ..ServerTimes::default() };
            // Times in the body take precedence over times in the head, because they arrive last and are
            // more complete.
            self.times = told.or(self.times);
        }
        if let Some(reason) = &part.finish_reason {
            self.row.finish_reason = Some(reason.as_ref().to_owned());
        }
    }

    fn token_event(&mut self, read: Read, is_output: bool) {
        let at = read.at;
        match self.row.last_token_ns {
            Some(last) => self.gaps.push(at - last),
            None => {
                self.row.first_token_ns = Some(at);
                self.row.read_delay_ns = read.delay;
            }
        }
        if is_output {
            self.row.first_output_ns.get_or_insert(at);
        }
        self.row.last_token_ns = Some(at);
        self.row.events += 1;
    }

    /// Records whether the stamps of received data come from the kernel or from our own reads.
    pub(crate) fn stamped(&mut self, by_kernel: bool) {
        self.row.stamp = if by_kernel { Stamp::Kernel } else { Stamp::User };
    }

    /// Whether the end of the response has arrived: `[DONE]`, or the last event of the protocol.
    pub(crate) fn is_marked_done(&self) -> bool {
        self.marked_done
    }

    /// Records that the stream's body ended cleanly at `at`; returns an error if the response is
    /// incomplete.
    pub(crate) fn ended(&mut self, at: u64) -> Result<(), Failure> {
        self.freed = Some(at);
        let is_told = self.row.finish_reason.is_some() || self.usage.is_some();
        let end_event = self.protocol.end_event();
        let whole = self.marked_done || (is_told && end_event.is_none());
        if self.row.events == 0 && (whole || self.row.first_chunk_ns.is_none()) {
            self.row.done_ns.get_or_insert(at);
            return Err(Failure::new(Outcome::Empty, "the stream ended without any text"));
        }
        if !whole {
            let missing = end_event.unwrap_or("finish reason, usage or [DONE]");
            return Err(Failure::new(Outcome::Reset, format!("the stream ended before its {missing}")));
        }
        self.row.done_ns.get_or_insert(at);
        Ok(())
    }

    /// Returns when the last byte of the body arrived; `None` if it has not arrived.
    pub(crate) fn freed(&self) -> Option<u64> {
        self.freed
    }

    /// Completes the row of a request that ended with `result`. Returns the finished entry and the
    /// response.
    pub(crate) fn finish(mut self: Box<Self>, result: Result<(), Failure>) -> (Entry, Reply) {
        match result {
            Ok(()) => self.row.outcome = Outcome::Ok,
            Err(failure) => {
                self.row.outcome = failure.outcome;
                self.row.error = Some(failure.text);
            }
        }
        self.count_tokens();
        self.row.tell_times(self.times);
        self.digest = self.digest();
        let tokens = self.content_tokens();
        if let Some(words) = &mut self.words {
            words.answered(&self.content, std::mem::take(&mut self.reasoning));
        }
        let content = std::mem::take(&mut self.content);
        (Entry(self), Reply { content, tokens })
    }

    fn count_tokens(&mut self) {
        let row = &mut self.row;
        if let Some(usage) = self.usage {
            row.prompt_tokens = usage.prompt_tokens();
            row.cached_tokens = usage.cached_tokens();
            row.reasoning_tokens = usage.reasoning_tokens();
        }
        let counted = self.usage.and_then(|usage| usage.completion_tokens());
        (row.output_tokens, row.token_source) = match counted {
            Some(tokens) => (Some(tokens), Some(TokenSource::Usage)),
            None if row.events > 0 => (Some(row.events), Some(TokenSource::Events)),
            None => (None, None),
        };
        let text = self.content.len() + self.reasoning.len();
        // If the response has no text, as with tool calls, only the total number of bytes is available.
        let text = if text > 0 { text } else { usize::try_from(row.bytes).unwrap_or(usize::MAX) };
        let limits = Limits::new(self.asked.bytes, row.events, text);
        let doubt = self.usage.and_then(|usage| usage.no_count()).or_else(|| row.doubt(&limits));
        if let Some(doubt) = doubt {
            row.disbelieve(doubt);
            self.usage = None;
        }
    }

    /// Returns the number of tokens of the response's content; `None` if the server did not report the
    /// total number of tokens, or if the response has reasoning and the server did not report the number of
    /// reasoning tokens.
    fn content_tokens(&self) -> Option<u32> {
        let usage = self.usage?;
        let reasoning = match usage.reasoning_tokens() {
            None if !self.reasoning.is_empty() => return None,
            told => told.unwrap_or_default(),
        };
        usage.completion_tokens()?.checked_sub(reasoning)
    }

    fn digest(&self) -> Option<[u8; 8]> {
        if self.content.is_empty() && self.reasoning.is_empty() {
            return None;
        }
        let hash = Sha256::new().chain_update(&self.content).chain_update(&self.reasoning).finalize();
        hash.first_chunk().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Api;
    use crate::rows::Phase;

    /// Returns the number of content tokens of a response with this reasoning and this usage.
    fn content_tokens(reasoning: &str, usage: &str) -> Option<u32> {
        let wanted = RequestRow { requested_tokens: 9, ..RequestRow::wanted(0, Phase::Measure, 0) };
        let mut tally = Tally::new(wanted, Api::Chat.protocol());
        let message = format!(r#"{{"content":"a","reasoning":"{reasoning}"}}"#);
        let answer = format!(r#"{{"choices":[{{"message":{message}}}],"usage":{usage}}}"#);
        let result = tally.whole(answer.as_bytes(), 1);
        tally.finish(result).1.tokens
    }

    #[test]
    fn what_an_answer_adds_to_a_history_is_known_only_where_the_server_tells_it_all() {
        assert_eq!(content_tokens("", r#"{"completion_tokens":9}"#), Some(9));
        assert_eq!(content_tokens("", r#"{"prompt_tokens":9}"#), None);
        let with = r#"{"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":4}}"#;
        assert_eq!(content_tokens("so", with), Some(5));
        assert_eq!(content_tokens("so", r#"{"completion_tokens":9}"#), None, "how many were reasoning?");
        assert_eq!(content_tokens("", r#"{"completion_tokens":2000000000}"#), None, "an impossible count");
    }
}
