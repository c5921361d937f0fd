//! The state of one request in flight, updated with every event. When the request ends, its row is created
//! from this state.

use std::borrow::Cow;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::protocol::{Channel, Part, Protocol, Timings, Usage, Wrong, joined_halves, server_words};
use crate::rows::{Finish, Outcome, Record, ReportedCounts, RequestRow, ServerTimes, Stamp, TextSize};
use crate::units::Nanos;
use crate::workload::Tokenizer;

use super::gaps::Gaps;
use super::io::Read;
use super::sse::Event;
use super::template::Template;
use super::transcripts::RequestTexts;

/// Bytes of text per token in most languages; used to estimate the size of a response's text.
const TOKEN_BYTES: usize = 5;
/// A text that equals everything streamed so far repeats the whole message only if at least this many events came
/// before it. Two equal tokens in a row are common.
const EVENTS_BEFORE_REPEAT: u32 = 3;
/// Size of the kept beginning of an event that was not read, in bytes. Much more is kept than is shown, because secrets
/// are removed before the text is truncated for display, and a secret that is cut here would not be found.
const UNREAD_BYTES: usize = 64 << 10;
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
    /// Whether a tokenizer can count the tokens of the response's text.
    pub can_count: bool,
}

/// Returns the beginning of an event as text.
fn beginning(data: &[u8]) -> Box<str> {
    String::from_utf8_lossy(&data[..data.len().min(UNREAD_BYTES)]).into()
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
    /// Number of output tokens according to the server's timings.
    timed_tokens: Option<f64>,
    /// Number of events with content, and of those with reasoning.
    channel_events: [u32; 2],
    /// Number of bytes of names and arguments of tool calls.
    call_bytes: usize,
    /// Whether the streamed reasoning was a summary.
    is_summarized: bool,
    /// Whether the last event with text or usage was one with usage alone, which ends a stream.
    closes_with_usage: bool,
    /// Whether the stream has text of a second choice.
    has_other_choice: bool,
    /// Number of events that were valid JSON of an unknown shape.
    unread_events: u32,
    /// The beginning of the first event that was valid JSON of an unknown shape; `None` if there was none.
    unread: Option<Box<str>>,
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
    /// What the head says about the body, if it is not an event stream.
    content_kind: Option<Box<str>>,
    /// When the last byte of the body arrived, which freed the request's slot; `None` if it has not arrived.
    freed: Option<u64>,
    /// The recorded texts; `None` if the run does not record them.
    words: Option<Box<RequestTexts>>,
    /// The streamed text whose tokens the tokenizer is to count; `None` if they are known, or there is no tokenizer.
    uncounted: Option<Box<str>>,
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
        let Tally { row, gaps, digest, words, uncounted, .. } = *self.0;
        Unwritten { row, gaps, digest, words, uncounted }
    }
}

/// A finished request that has not been written yet.
#[derive(Debug)]
pub(crate) struct Unwritten {
    row: RequestRow,
    gaps: Gaps,
    digest: Option<[u8; 8]>,
    words: Option<Box<RequestTexts>>,
    uncounted: Option<Box<str>>,
}

impl Unwritten {
    /// Returns the size of the request's gaps and texts, in bytes.
    pub(crate) fn size(&self) -> usize {
        let words = self.words.as_ref().map_or(0, |words| words.size());
        self.gaps.size() + words + self.uncounted.as_ref().map_or(0, |text| text.len())
    }

    /// Converts the request into a record for the file, and returns it with its texts, if they are
    /// recorded. If nothing else counted the tokens of the streamed text, `tokenizer` does.
    pub(crate) fn into_record(self, tokenizer: Option<&Tokenizer>) -> (Record, Option<Box<RequestTexts>>) {
        let Unwritten { mut row, gaps, digest, words, uncounted } = self;
        let counted = uncounted.zip(tokenizer).and_then(|(text, tokenizer)| tokenizer.bare_tokens(&text).ok());
        if let Some(tokens) = counted {
            row.count_by_tokenizer(tokens);
        }
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
            timed_tokens: None,
            channel_events: [0; 2],
            call_bytes: 0,
            is_summarized: false,
            closes_with_usage: false,
            has_other_choice: false,
            unread_events: 0,
            unread: None,
            times: ServerTimes::default(),
            protocol,
            asked: Asks::default(),
            digest: None,
            marked_done: false,
            content_kind: None,
            freed: None,
            words: None,
            uncounted: None,
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

    /// Sets what the head of the response says about its body, if it is not an event stream.
    pub(crate) fn set_content_kind(&mut self, kind: Option<&str>) {
        self.content_kind = kind.map(Into::into);
    }

    /// Returns what the head of the response says about its body; `None` if it is an event stream, or says nothing.
    pub(crate) fn content_kind(&self) -> Option<&str> {
        self.content_kind.as_deref()
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
            self.take_late_usage(event.data);
            return Ok(false);
        }
        self.row.first_chunk_ns.get_or_insert(read.at);
        if event.name == b"error" && !says_done(event.data) {
            // The data is not parsed as JSON here, because some servers send a plain sentence.
            return Err(Failure::new(Outcome::StreamError, server_words(event.data)));
        }
        // Every protocol takes events without a name.
        if !event.name.is_empty() && event.name != b"error" && !self.protocol.takes_event(event.name) {
            return self.other_event(event.data, read);
        }
        if let Some((text, channel)) = self.template.read(event.data)
            && !self.repeats_everything(text, channel)
        {
            match channel {
                Channel::Content => self.content.push_str(text),
                Channel::Reasoning => self.reasoning.push_str(text),
            }
            self.closes_with_usage = false;
            self.channel_events[channel as usize] += 1;
            self.token_event(read, channel == Channel::Content);
            return Ok(true);
        }
        if says_done(event.data) {
            self.is_done(read);
            return Ok(false);
        }
        if event.data.trim_ascii().is_empty() {
            return Ok(false);
        }
        let part = self.protocol.event(event.data)?;
        Ok(self.parsed(event.data, part, read))
    }

    /// Processes an event whose name is not one of the protocol's (such as SGLang's sglext_ids). It is skipped unless
    /// it can be read.
    fn other_event(&mut self, data: &[u8], read: Read) -> Result<bool, Failure> {
        if says_done(data) {
            self.is_done(read);
            return Ok(false);
        }
        match self.protocol.event(data) {
            Ok(part) if !part.is_unread => Ok(self.parsed(data, part, read)),
            Ok(_) | Err(Wrong::Malformed(_)) => Ok(false),
            Err(wrong) => Err(wrong.into()),
        }
    }

    /// Takes the token counts from an event after the end of the response. Nothing else in it matters.
    fn take_late_usage(&mut self, data: &[u8]) {
        if let Ok(Part { usage: Some(usage), .. }) = self.protocol.event(data) {
            self.take_usage(usage);
        }
    }

    /// Processes a parsed event, and learns its shape for later events. Returns true if the event contained text.
    fn parsed(&mut self, data: &[u8], mut part: Part, read: Read) -> bool {
        if part.is_unread {
            self.unread_events += 1;
            self.unread.get_or_insert_with(|| beginning(data));
            return false;
        }
        if part.has_unread {
            self.unread_events += 1;
        }
        self.note(&part);
        if let Some((text, channel)) = part.only_text() {
            self.template.learn(data, text, channel);
        }
        if let Some(words) = &mut self.words {
            words.take_calls(self.protocol, data);
        }
        if self.repeats_everything(&part.content, Channel::Content)
            || (part.is_whole_message && self.row.events > 0 && *part.content == *self.content)
        {
            part.content = Cow::Borrowed("");
        }
        if part.is_whole_message && self.row.events > 0 && *part.reasoning == *self.reasoning {
            part.reasoning = Cow::Borrowed("");
        }
        let is_output = !part.content.is_empty() || part.has_tool_call();
        let is_text = is_output || !part.reasoning.is_empty();
        if is_text {
            self.content.push_str(&part.content);
            self.reasoning.push_str(&part.reasoning);
            self.channel_events[Channel::Content as usize] += u32::from(!part.content.is_empty());
            self.channel_events[Channel::Reasoning as usize] += u32::from(!part.reasoning.is_empty());
            self.token_event(read, is_output);
        }
        self.closes_with_usage = !is_text && (self.closes_with_usage || part.is_usage_alone);
        if part.is_last {
            self.is_done(read);
        }
        is_text
    }

    /// Whether `text`, the text of the next event, repeats everything that was streamed in this channel. Some servers
    /// send the whole message once more at the end.
    fn repeats_everything(&self, text: &str, channel: Channel) -> bool {
        let streamed = match channel {
            Channel::Content => &self.content,
            Channel::Reasoning => &self.reasoning,
        };
        self.channel_events[channel as usize] >= EVENTS_BEFORE_REPEAT
            && text.len() == streamed.len()
            && text == streamed
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
            None if self.content.is_empty() && self.reasoning.is_empty() && !part.has_tool_call() => {
                Err(self.without_text("a complete response without text"))
            }
            None => self.refuse_failed(),
        }
    }

    /// Returns the failure of a response without any text: `what`, and what the server reported about it.
    fn without_text(&self, what: &str) -> Failure {
        let usage = self.usage.unwrap_or_default();
        let tokens = usage.completion_tokens().filter(|tokens| *tokens > 0);
        let reasoning = usage.reasoning_tokens().filter(|tokens| *tokens > 0);
        let counts = match (tokens, reasoning) {
            (Some(tokens), Some(reasoning)) => {
                Some(format!("usage reports {tokens} tokens, {reasoning} of them reasoning"))
            }
            (Some(tokens), None) => Some(format!("usage reports {tokens} tokens")),
            (None, _) => None,
        };
        let reason = self.row.finish_reason.as_ref().map(|reason| format!("finish reason {reason}"));
        let unread = self.unread.as_ref().map(|event| format!("an event was not understood: {event}"));
        let told: Vec<String> = [counts, reason, unread].into_iter().flatten().collect();
        let text = if told.is_empty() { what.to_owned() } else { format!("{what}; {}", told.join("; ")) };
        Failure::new(Outcome::Empty, text)
    }

    /// Fails if the server's finish reason states that it gave up.
    fn refuse_failed(&self) -> Result<(), Failure> {
        match &self.row.finish_reason {
            Some(reason) if Finish::of(reason) == Finish::Failed => {
                Err(Failure::new(Outcome::Aborted, format!("the server gave up: finish reason {reason}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the failure of a response to a request for a stream that is not one: `data`, of the content type
    /// `kind`.
    pub(crate) fn not_a_stream(&mut self, data: &[u8], kind: &str, at: u64) -> Failure {
        self.freed = Some(at);
        self.row.done_ns.get_or_insert(at);
        match self.protocol.whole(data) {
            Ok(_) => Failure::new(
                Outcome::NotStreamed,
                format!("the whole response came at once ({kind}), although a stream was requested"),
            ),
            Err(Wrong::Error(text)) => Failure::new(Outcome::StreamError, text),
            Err(Wrong::Malformed(_)) => {
                let words = server_words(data);
                Failure::new(Outcome::Malformed, format!("the response is not an event stream ({kind}): {words}"))
            }
        }
    }

    fn note(&mut self, part: &Part) {
        if let Some(usage) = part.usage {
            self.take_usage(usage);
        }
        if let Some(Timings { prefill_ns, decode_ns, tokens }) = part.timings {
            let told = ServerTimes { prefill_ns, decode_ns, ..ServerTimes::default() };
            // Times in the body take precedence over times in the head, because they arrive last and are
            // more complete.
            self.times = told.or(self.times);
            self.timed_tokens = tokens.or(self.timed_tokens);
        }
        if let Some(reason) = &part.finish_reason {
            self.row.finish_reason = Some(reason.as_ref().to_owned());
        }
        self.call_bytes += part.call_bytes;
        self.is_summarized |= part.is_summary;
        self.has_other_choice |= part.has_other_choice;
    }

    fn take_usage(&mut self, usage: Usage) {
        self.usage = Some(self.usage.map_or(usage, |earlier| earlier.updated(usage)));
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

    /// Returns when the response was complete, as the time of data that follows it.
    pub(crate) fn last_read(&self) -> Read {
        Read { at: self.row.done_ns.unwrap_or_default(), delay: None }
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
        let end_event = self.protocol.end_event();
        let has_reason = self.row.finish_reason.is_some() && end_event.is_none();
        let whole = self.marked_done || has_reason || (self.closes_with_usage && end_event.is_none());
        if whole || self.row.first_chunk_ns.is_none() {
            self.row.done_ns.get_or_insert(at);
        }
        if whole {
            self.refuse_failed()?;
        }
        if self.row.events == 0 && (whole || self.row.first_chunk_ns.is_none()) {
            return Err(self.without_text("the stream ended without any text"));
        }
        if !whole {
            let missing = end_event.unwrap_or("finish reason, usage or [DONE]");
            let unread = self.unread.as_ref().map(|event| format!("; an event was not understood: {event}"));
            let text = format!("the stream ended before its {missing}{}", unread.unwrap_or_default());
            return Err(Failure::new(Outcome::Reset, text));
        }
        Ok(())
    }

    /// Returns when the last byte of the body arrived; `None` if it has not arrived.
    pub(crate) fn freed(&self) -> Option<u64> {
        self.freed
    }

    /// Returns the response so far, for the conversation that continues before the row is complete.
    pub(crate) fn reply(&self) -> Reply {
        let is_needed = self.row.conversation.is_some();
        let content = if is_needed { self.content.clone() } else { String::new() };
        Reply { content, tokens: self.content_tokens() }
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
        for text in [&mut self.content, &mut self.reasoning] {
            if let Some(joined) = joined_halves(text) {
                *text = joined;
            }
        }
        self.count_tokens();
        if self.asked.can_count && self.row.tokens_unknown.is_some() && self.call_bytes == 0 {
            self.uncounted = Some([&*self.reasoning, &*self.content].concat().into());
        }
        self.row.tell_times(self.times);
        self.digest = self.digest();
        let tokens = self.content_tokens();
        if let Some(words) = &mut self.words {
            words.answered(&self.content, std::mem::take(&mut self.reasoning));
        }
        let content = std::mem::take(&mut self.content);
        (Entry(self), Reply { content, tokens })
    }

    /// Counts the tokens of the response, as far as they were counted at all.
    fn count_tokens(&mut self) {
        let text = TextSize {
            bytes: self.content.len() + self.reasoning.len() + self.call_bytes,
            reasoning_bytes: self.reasoning.len(),
            call_bytes: self.call_bytes,
            is_summarized: self.is_summarized,
            has_other_choice: self.has_other_choice,
        };
        let usage = self.usage.unwrap_or_default();
        let reported = ReportedCounts {
            prompt: usage.prompt_tokens(),
            cached: usage.cached_tokens(),
            reasoning: usage.reasoning_tokens(),
            completion: usage.completion_tokens(),
            timed: self.timed_tokens,
            doubt: usage.no_count().or_else(|| usage.excess_reasoning()),
        };
        self.row.count_tokens(reported, text, self.asked.bytes);
        self.row.unread_events = Some(self.unread_events);
        if self.row.usage_doubt.is_some() {
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
