//! Writes a streamed response. Each event is sent when it is due, in the configured form, and the
//! response's fault is applied.

use std::rc::Rc;

use super::config::{FirstChunk, UsagePosition};
use super::conn::{Conn, Gone};
use super::event::Envelope;
use super::fault::Kind;
use super::head::{SERVER, error};
use super::job::{End, Job};
use super::log::{Entry, Outcome};
use super::pace::Pace;
use super::part::{Field, Usage};
use super::random::random;
use super::request::Api;
use super::shared::Shared;
use super::tell;
use super::timer::now;
use super::tokens::Speech;
use super::wire::{Framing, Wire};

/// One streamed response in progress.
pub(super) struct Stream<'a> {
    conn: &'a mut Conn,
    entry: &'a mut Entry,
    job: Job,
    shared: Rc<Shared>,
    envelope: Envelope,
    wire: Wire,
    pace: Pace,
    speech: Speech,
    text: Vec<u8>,
    /// Number of tokens in the events that were created (`sent`), and in those that were passed to the
    /// kernel (`written`).
    sent: u32,
    written: u32,
    struck: bool,
    /// Whether events may share writes because there is no wait between tokens.
    eager: bool,
}

/// Returns the pace of a job: as configured, or slowed down by its fault.
pub(super) fn pace(shared: &Shared, job: &Job) -> Pace {
    let factor = if let Some(Kind::Slow(factor)) = job.fault { f64::from(factor) } else { 1.0 };
    Pace::new(&shared.config, job.number, factor)
}

/// Returns the source of a job's text, which depends on the server's seed, the request's seed and the
/// prompt.
pub(super) fn speech(shared: &Shared, job: &Job) -> Speech {
    Speech::new(shared.config.words, random(shared.config.seed, b"text", job.request.text_seed()))
}

impl<'a> Stream<'a> {
    /// Prepares the response.
    pub(super) fn new(conn: &'a mut Conn, entry: &'a mut Entry, job: Job) -> Stream<'a> {
        let shared = Rc::clone(&conn.shared);
        let config = &shared.config;
        Stream {
            envelope: Envelope::new(config, &job.request, job.number, job.created),
            wire: Wire::new(config, job.framing, job.number),
            pace: pace(&shared, &job),
            speech: speech(&shared, &job),
            text: Vec::new(),
            sent: 0,
            written: 0,
            struck: false,
            eager: config.itl.0 == 0 && !config.write_per_event,
            shared,
            conn,
            entry,
            job,
        }
    }

    /// Writes the response. Returns what happens to the connection afterwards.
    pub(super) async fn run(mut self) -> Result<End, Gone> {
        self.entry.line.status = Some(200);
        let mut planned = self.pace.first(self.job.slot_at, self.job.computed());
        planned = self.open(planned).await?;
        while self.sent < self.job.tokens {
            if let Some(end) = self.strike().await? {
                return Ok(end);
            }
            let group = self.group();
            if self.sent > 0 {
                for _ in 0..group {
                    planned = self.pace.next(planned, self.shared.busy());
                }
                planned = self.due(planned).await?;
            }
            self.tokens(group);
            if !self.eager || self.wire.full() {
                self.flush().await?;
            }
        }
        match self.strike().await? {
            Some(end) => Ok(end),
            None => self.close().await,
        }
    }

    /// Writes the head, the opening chunk and comments, and waits until the first token is due. Returns the
    /// time at which the token was due.
    async fn open(&mut self, first: u64) -> Result<u64, Gone> {
        let chunked = self.job.framing == Framing::Chunked;
        let version = if self.shared.config.close_delimited { "1.0" } else { "1.1" };
        let length = if chunked { "transfer-encoding: chunked\r\n" } else { "" };
        let connection = if self.job.keep_alive { "" } else { "connection: close\r\n" };
        let told = tell::fields(&self.shared.config, self.job.queued(), self.job.trace.as_deref());
        let head = format!(
            "HTTP/{version} 200 OK\r\n{SERVER}content-type: text/event-stream; charset=utf-8\r\n\
             cache-control: no-cache\r\n{told}{length}{connection}\r\n"
        );
        self.wire.head(head.as_bytes());
        let prompt = self.job.request.prompt_tokens;
        if self.shared.config.keepalive_comments {
            self.wire.body(&[self.envelope.comment(&format!("keepalive 0/{prompt}")).as_bytes()]);
        }
        let usage = self.usage_wanted().then(|| self.usage());
        let named = self.envelope.events().map(|events| events.opening(usage));
        let opening = match (self.job.request.api, self.shared.config.first) {
            (Api::Chat, FirstChunk::Role) => Some(self.envelope.role("\"\"")),
            (Api::Chat, FirstChunk::Empty) => Some(self.envelope.role("null")),
            (Api::Completions, FirstChunk::Empty) => {
                Some(self.envelope.open(Field::Content, false) + &self.envelope.close(None, None))
            }
            _ => None,
        };
        if let Some(opening) = named.or(opening) {
            self.wire.body(&[opening.as_bytes()]);
        }
        if self.shared.config.keepalive_comments {
            let half = self.job.slot_at + first.saturating_sub(self.job.slot_at) / 2;
            self.wait(half).await?;
            self.wire.body(&[self.envelope.comment(&format!("keepalive {prompt}/{prompt}")).as_bytes()]);
        }
        if !self.eager {
            self.flush().await?;
        }
        let first = self.due(first).await?;
        self.job.prefilled();
        Ok(first)
    }

    /// Waits until the token planned for `planned` is due, which may be later if all streams are paused.
    /// Returns the time at which the token was due.
    async fn due(&mut self, planned: u64) -> Result<u64, Gone> {
        self.wait(planned).await?;
        let due = self.shared.after_pause(planned);
        self.wait(due).await?;
        Ok(due)
    }

    /// Writes pending data and waits until `until`, unless this instant has passed.
    async fn wait(&mut self, until: u64) -> Result<(), Gone> {
        if until > now() {
            self.flush().await?;
            self.conn.wait_until(until).await?;
        }
        Ok(())
    }

    /// Returns how many tokens share the next event. Reasoning and content never share an event.
    fn group(&self) -> u32 {
        let border = if self.sent < self.job.reasoning { self.job.reasoning } else { self.job.tokens };
        self.shared.config.tokens_per_event.clamp(1, border - self.sent)
    }

    /// Appends the event of the next `group` tokens.
    fn tokens(&mut self, group: u32) {
        let config = &self.shared.config;
        let field = if self.sent < self.job.reasoning { Field::Reasoning } else { Field::Content };
        self.text.clear();
        for _ in 0..group {
            self.job.say(self.speech.push(&mut self.text));
        }
        if config.log_text {
            self.entry.answer.extend_from_slice(&self.text);
        }
        let role = self.sent == 0 && config.first == FirstChunk::Content;
        self.sent += group;
        let last = self.sent == self.job.tokens && self.finishes_with_text();
        let usage = last || config.usage == UsagePosition::Every;
        let is_named = self.envelope.events().is_some();
        if (role || last || usage) && !is_named {
            let open = self.envelope.open(field, role);
            let finish = last.then_some(self.job.finish);
            let usage = (usage && self.usage_wanted()).then(|| self.usage());
            let close = self.envelope.close(finish, usage);
            self.wire.body(&[open.as_bytes(), &self.text, close.as_bytes()]);
        } else {
            let (open, close) = self.envelope.around(field);
            self.wire.body(&[open, &self.text, close]);
        }
    }

    fn finishes_with_text(&self) -> bool {
        matches!(self.shared.config.usage, UsagePosition::WithContent | UsagePosition::Both)
    }

    fn usage_wanted(&self) -> bool {
        match self.shared.config.usage {
            UsagePosition::Never => false,
            UsagePosition::Always => true,
            _ if self.job.request.api.always_tells_usage() => true,
            _ => self.job.request.include_usage,
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            prompt: self.job.request.prompt_tokens,
            cached: (!self.shared.config.no_cached_tokens).then_some(self.job.cached),
            completion: self.job.told(self.sent),
            reasoning: self.sent.min(self.job.reasoning),
        }
    }

    /// Writes pending data. If it contains tokens, the time of the write is recorded in the log entry.
    async fn flush(&mut self) -> Result<(), Gone> {
        if self.sent > self.written {
            let at = now();
            self.entry.line.first_write_ns.get_or_insert(at);
            self.entry.line.last_write_ns = Some(at);
        }
        self.wire.flush(self.conn).await?;
        self.written = self.sent;
        self.entry.line.output_tokens = self.written;
        Ok(())
    }

    /// Writes the finish chunk, the usage and the end marker. The slot is released first, so that it is
    /// free when the client sees the end of the response.
    async fn close(&mut self) -> Result<End, Gone> {
        self.job.served();
        let empty = self.job.fault == Some(Kind::Empty);
        let mut events = Vec::new();
        let usage = self.usage_wanted().then(|| self.usage());
        let named = self.envelope.events().map(|events| events.closing(self.job.finish, usage));
        let is_named = named.is_some();
        events.extend(named);
        if !empty && !is_named && !self.finishes_with_text() {
            let usage = (self.shared.config.usage == UsagePosition::Last && self.usage_wanted()).then(|| self.usage());
            events.push(self.envelope.finish(self.job.finish, usage));
        }
        let alone = !matches!(self.shared.config.usage, UsagePosition::Last | UsagePosition::WithContent);
        if !empty && !is_named && alone && self.usage_wanted() {
            events.push(self.envelope.usage(self.usage()));
        }
        let timings = tell::timings(&self.shared.config, self.job.took);
        if let Some(last) = events.last_mut() {
            *last = self.envelope.with(last, &timings);
        }
        if !self.shared.config.no_done && !is_named {
            events.push(self.envelope.data("[DONE]"));
        }
        for event in &events {
            if self.shared.config.write_per_event {
                self.flush().await?;
            }
            self.wire.body(&[event.as_bytes()]);
        }
        self.wire.end();
        self.flush().await?;
        self.entry.line.outcome = if empty { Outcome::Fault } else { Outcome::Complete };
        self.entry.line.finish_reason = (!empty).then_some(self.job.finish);
        Ok(if self.job.keep_alive { End::Keep } else { End::Close })
    }

    /// Applies the fault of this response if it is due. Returns what happens to the connection if the fault
    /// ended the response; otherwise `None`.
    async fn strike(&mut self) -> Result<Option<End>, Gone> {
        let Some(fault) = self.job.fault.filter(|_| !self.struck) else { return Ok(None) };
        let Some(after) = after(fault, self.job.tokens) else { return Ok(None) };
        if self.sent < after {
            return Ok(None);
        }
        self.struck = true;
        match fault {
            Kind::InvalidJson(_) => self.garbage(br#"{"choices":[{"index":0,"delta":{"content":]}"#).await,
            Kind::InvalidUtf8(_) => self.with_text(b"\xff\xfe\xc3").await,
            Kind::WrongShape(_) => self.garbage(br#"{"choices":{"delta":"text"}}"#).await,
            Kind::HugeLine(bytes) => self.with_text(&vec![b'x'; bytes as usize]).await,
            _ => self.end_by(fault).await.map(Some),
        }
    }

    async fn garbage(&mut self, payload: &[u8]) -> Result<Option<End>, Gone> {
        let end = self.envelope.line_end.as_bytes();
        self.wire.body(&[b"data: ", payload, end, end]);
        self.flush().await.map(|()| None)
    }

    async fn with_text(&mut self, text: &[u8]) -> Result<Option<End>, Gone> {
        let (open, close) = self.envelope.around(Field::Content);
        self.wire.body(&[open, text, close]);
        self.flush().await.map(|()| None)
    }

    async fn end_by(&mut self, fault: Kind) -> Result<End, Gone> {
        self.entry.line.outcome = Outcome::Fault;
        (self.job.slot, self.job.serving) = (None, None);
        let mut end = End::Close;
        match fault {
            Kind::ErrorObject(_) => {
                let failure = self.envelope.events().map(|events| events.failure("a fault of the mock"));
                let plain = || {
                    self.envelope.data(&error(Some(self.job.request.api), 500, "a fault of the mock"))
                        + &self.envelope.data("[DONE]")
                };
                self.wire.body(&[failure.unwrap_or_else(plain).as_bytes()]);
                self.wire.end();
                end = if self.job.keep_alive { End::Keep } else { End::Close };
            }
            Kind::Truncate(_) | Kind::Close(_) => {
                self.wire.body(&[self.envelope.around(Field::Content).0]);
                match fault {
                    Kind::Truncate(_) => self.wire.end(),
                    _ => end = End::Cut,
                }
            }
            _ => end = End::Reset,
        }
        self.flush().await?;
        if matches!(fault, Kind::Stall(_)) {
            return Err(self.conn.wait_for_end().await);
        }
        Ok(end)
    }
}

/// Returns the number of tokens after which a fault affects a response of `tokens` tokens; `None` if it does
/// not occur between tokens.
fn after(fault: Kind, tokens: u32) -> Option<u32> {
    let said = match fault {
        Kind::Reset(after)
        | Kind::Stall(after)
        | Kind::Truncate(after)
        | Kind::Close(after)
        | Kind::InvalidJson(after)
        | Kind::InvalidUtf8(after)
        | Kind::WrongShape(after)
        | Kind::ErrorObject(after) => after,
        Kind::HugeLine(_) => None,
        _ => return None,
    };
    Some(said.unwrap_or(tokens / 2).min(tokens))
}
