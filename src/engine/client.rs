//! Performs one request, from the time at which it is due until its row is complete. Failed requests are not
//! retried.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::plan::Timeouts;
use crate::protocol::Protocol;
use crate::rows::{Outcome, Phase, RequestRow};
use crate::units::{Nanos, SecretMask};

use super::clock::Clock;
use super::connection::{Connection, Outgoing, Progress};
use super::http::Body;
use super::http2::{Exchange, Heads, Lease, Sessions};
use super::io::{Read, Stamps};
use super::limit::Limit;
use super::lingering::{HeldOpen, HeldStream, Lingerers};
use super::links::Links;
use super::observe::Observer;
use super::other_body::OtherBody;
use super::pattern::Pattern;
use super::pool::Pool;
use super::progress::Progress as Live;
use super::sse;
use super::start::Start;
use super::tally::{Aside, Entry, Failure, Reply, Tally};
use super::target::Target;
use super::told::Told;

/// The maximum size of the body of a response that is not streamed, in bytes; the whole body is held in
/// memory.
const MAX_WHOLE: usize = 64 << 20;
/// How much of the body of an error response is read, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;
/// The maximum size of a streamed response, in bytes; the text of the response is kept in memory
/// until the response ends.
const MAX_STREAM: u64 = 256 << 20;
/// After a connection breaks, how many times, and at what interval, the client checks whether the server
/// process has ended.
const NEWS_OF_DEATH: (u32, Duration) = (20, Duration::from_millis(5));
/// The longest pause that is honored if a server requests one (`Retry-After`), in seconds.
const LONGEST_RETRY_AFTER_SECS: u64 = 3_600;
/// Time limit for reading the body of an error response.
const ERROR_BODY_TIME: Duration = Duration::from_secs(2);

/// State that all requests of a run share, whichever thread performs them.
pub(crate) struct Common {
    /// The run's clock.
    pub clock: Clock,
    /// How requests and responses are encoded.
    pub protocol: &'static dyn Protocol,
    /// Where requests go.
    pub target: Arc<Target>,
    /// Removes the target's secrets from texts.
    pub mask: Arc<SecretMask>,
    /// Time limits of a request.
    pub timeouts: Timeouts,
    /// Whether responses are streamed token by token.
    pub stream: bool,
    /// The encoded parts of every HTTP/1.1 request, except its number and its body.
    pub pattern: Pattern,
    /// The heads of every HTTP/2 request; `None` unless HTTP/2 is used.
    pub heads: Option<Heads>,
    /// Signals the end of the run, which cancels requests in flight.
    pub cut: Cut,
    /// The live counters of the run.
    pub progress: Arc<Live>,
    /// Records the load generator's own behavior.
    pub observer: Observer,
}

/// Performs the requests of one thread.
pub(crate) struct Client {
    /// The state shared with the other threads.
    pub common: Arc<Common>,
    /// The connections of this thread.
    pub links: Links,
    /// The streams of this thread that the server holds open after `[DONE]`.
    pub lingerers: Lingerers,
}

impl std::ops::Deref for Client {
    type Target = Common;
    fn deref(&self) -> &Common {
        &self.common
    }
}

/// Signals the end of a run to all its requests at once, including those that start to wait for it later.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    over: AtomicBool,
    notify: Notify,
}

impl Cut {
    /// Cancels every request in flight.
    pub(crate) fn now(&self) {
        self.over.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Returns the result of `work`; `None` if the run ends first. Must be awaited directly by a task,
    /// because only the waker of its first poll is notified.
    pub(super) async fn or<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let mut notified = pin!(self.notify.notified());
        let mut listens = false;
        poll_fn(|cx| {
            if !std::mem::replace(&mut listens, true) && notified.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            match self.over.load(Ordering::Acquire) {
                true => Poll::Ready(None),
                false => work.as_mut().poll(cx).map(Some),
            }
        })
        .await
    }
}

/// One request to perform.
pub(crate) struct Order {
    /// When the request starts and why.
    pub start: Start,
    /// The encoded body of the request.
    pub body: Bytes,
    /// The fields of the request's row that are known before it is sent.
    pub tally: Box<Tally>,
}

/// A request that has ended.
pub(crate) struct Ended {
    /// When the request started and why, as in its `Order`.
    pub start: Start,
    /// The entry for the writer, or the part of it that is known while the stream is held open.
    pub request: EndedRequest,
    /// The response to the request, for the conversation that continues after it.
    pub answer: Reply,
    /// When the slot that the request held became free, in nanoseconds since the run's start.
    pub(crate) freed: u64,
    /// Details of the request's failure that the request's row does not contain, if any.
    pub aside: Option<Aside>,
}

/// The row of a request that has ended.
pub(crate) enum EndedRequest {
    /// The row is complete.
    Complete(Entry),
    /// The response is complete, and the row follows when the server has closed the stream.
    HeldOpen {
        /// Number of the request.
        request: u64,
        /// The phase in which the request was scheduled.
        phase: Phase,
        /// When the request was sent, in nanoseconds since the run's start.
        sent: Option<u64>,
    },
}

impl EndedRequest {
    /// Returns the number of the request.
    pub(crate) fn number(&self) -> u64 {
        match self {
            EndedRequest::Complete(entry) => entry.row().request,
            EndedRequest::HeldOpen { request, .. } => *request,
        }
    }

    /// Returns the phase in which the request was scheduled.
    pub(crate) fn phase(&self) -> Phase {
        match self {
            EndedRequest::Complete(entry) => entry.row().phase,
            EndedRequest::HeldOpen { phase, .. } => *phase,
        }
    }

    /// Returns when the request was sent; `None` if it was not.
    pub(crate) fn sent(&self) -> Option<u64> {
        match self {
            EndedRequest::Complete(entry) => entry.row().sent_ns,
            EndedRequest::HeldOpen { sent, .. } => *sent,
        }
    }

    /// Returns the outcome of the request.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            EndedRequest::Complete(entry) => entry.row().outcome,
            EndedRequest::HeldOpen { .. } => Outcome::Ok,
        }
    }

    /// Returns the error of the request; empty if it succeeded.
    pub(crate) fn error(&self) -> &str {
        match self {
            EndedRequest::Complete(entry) => entry.row().error.as_deref().unwrap_or_default(),
            EndedRequest::HeldOpen { .. } => "",
        }
    }
}

/// A request that was performed, and its stream if the server holds it open.
pub(crate) struct Performed {
    /// The request.
    pub ended: Ended,
    /// The stream that is read on in the background; `None` if it has ended.
    pub held: Option<HeldOpen>,
}

impl From<Ended> for Performed {
    fn from(ended: Ended) -> Performed {
        Performed { ended, held: None }
    }
}

impl Client {
    /// Performs one request.
    pub(crate) async fn perform(&self, order: Order) -> Performed {
        let Order { start, body, mut tally } = order;
        let result = {
            // The future is large, so it is pinned where it is created instead of being moved.
            let exchange = pin!(self.exchange(&mut tally, start.request, body));
            let cut = || Err(Failure::new(Outcome::CutAtDrain, "still in progress at the end of drain"));
            self.cut.or(exchange).await.unwrap_or_else(cut)
        };
        let result = match result {
            Ok(None) => Ok(()),
            Ok(Some(stream)) if self.lingerers.have_room() => return self.held_open(start, stream, tally),
            Ok(Some(_)) => Ok(()),
            Err(failure) => Err(self.explain(failure).await),
        };
        let freed = tally.freed().unwrap_or_else(|| self.clock.now());
        let aside = result.as_ref().err().and_then(|failure| failure.aside);
        let (entry, answer) = self.completed(tally, freed, result);
        Performed::from(Ended { start, request: EndedRequest::Complete(entry), answer, freed, aside })
    }

    /// Ends a request whose response is complete, although its stream is not.
    fn held_open(&self, start: Start, stream: Box<HeldStream>, tally: Box<Tally>) -> Performed {
        let RequestRow { request, phase, sent_ns, .. } = tally.row;
        let request = EndedRequest::HeldOpen { request, phase, sent: sent_ns };
        let freed = self.clock.now();
        let answer = tally.reply();
        let held = HeldOpen { stream, tally, freed };
        Performed { ended: Ended { start, request, answer, freed, aside: None }, held: Some(held) }
    }

    /// Completes the row of a request whose slot became free at `freed`.
    pub(super) fn completed(&self, mut tally: Box<Tally>, freed: u64, result: Result<(), Failure>) -> (Entry, Reply) {
        tally.row.ended_ns = Some(freed);
        tally.row.finish_reason = tally.row.finish_reason.take().map(|reason| self.presentable(&reason));
        tally.finish(result)
    }

    /// Completes a failure: removes secrets from its text, and changes its outcome if the server process
    /// that sweepline started has died.
    async fn explain(&self, mut failure: Failure) -> Failure {
        failure.text = self.presentable(&failure.text);
        if matches!(failure.outcome, Outcome::Connect | Outcome::Reset) && self.server_died().await {
            failure = Failure::new(Outcome::ServerDied, format!("the server process has ended: {}", failure.text));
        }
        failure
    }

    /// Returns the beginning of a server's text, with secrets removed. They are removed before the text is
    /// truncated, because truncation could leave a part of a secret that is no longer recognized.
    fn presentable(&self, text: &str) -> String {
        crate::protocol::excerpt(&self.mask.hide(text))
    }

    /// Whether the server process that sweepline started has ended. The process's connections break a
    /// moment before its end is noticed, so this waits and checks several times.
    async fn server_died(&self) -> bool {
        let Some(alive) = &self.target.alive else { return false };
        let (times, pause) = NEWS_OF_DEATH;
        for _ in 0..times {
            if !alive.load(Ordering::Relaxed) {
                return true;
            }
            tokio::time::sleep(pause).await;
        }
        false
    }

    /// Sends a request and reads its response. Returns the stream if the server holds it open after the response.
    async fn exchange(&self, tally: &mut Tally, request: u64, body: Bytes) -> Result<Option<Box<HeldStream>>, Failure> {
        match &self.links {
            Links::One(pool) => self.on_one_of_its_own(pool, tally, request, body).await,
            // Boxed because the future is large and rarely used: this way it takes no memory in the tasks
            // of HTTP/1.1 requests.
            Links::Two(sessions) => Box::pin(self.on_a_shared_one(sessions, tally, request, body)).await,
        }
    }

    async fn on_one_of_its_own(
        &self,
        pool: &Pool,
        tally: &mut Tally,
        request: u64,
        body: Bytes,
    ) -> Result<Option<Box<HeldStream>>, Failure> {
        while let Some(mut connection) = pool.kept().await {
            let result = self.converse(&mut connection, tally, request, &body).await;
            let is_reset = matches!(&result, Err(failure) if failure.outcome == Outcome::Reset);
            match tally.row.headers_ns {
                None if is_reset => pool.was_closed(),
                None => {}
                Some(_) => pool.served_again(),
            }
            // If the server closed the kept connection before any byte of the request was written, another
            // connection is used. The request is not sent twice.
            let unused = is_reset && tally.row.sent_ns.is_none();
            if !unused {
                return keep(pool, connection, result);
            }
        }
        let (mut connection, opening) = pool.open().await?;
        tally.opened(opening.dns, opening.connect, opening.tls);
        let result = self.converse(&mut connection, tally, request, &body).await;
        keep(pool, connection, result)
    }

    /// Performs a request over HTTP/2, on a connection that it shares with others.
    async fn on_a_shared_one(
        &self,
        sessions: &Sessions,
        tally: &mut Tally,
        request: u64,
        body: Bytes,
    ) -> Result<Option<Box<HeldStream>>, Failure> {
        loop {
            let lease = sessions.lease().await?;
            let waited = lease.waited.map(|waited| waited.opening);
            waited.iter().for_each(|opening| tally.opened(opening.dns, opening.connect, opening.tls));
            let result = self.converse_on_a_stream(sessions, lease, tally, request, &body).await;
            let is_reset = matches!(&result, Err(failure) if failure.outcome == Outcome::Reset);
            // As with HTTP/1.1, another connection is used if the server closed this one before any byte of
            // the request was written.
            let unused = is_reset && waited.is_none() && tally.row.sent_ns.is_none();
            if !unused {
                return result;
            }
        }
    }

    async fn converse(
        &self,
        connection: &mut Connection,
        tally: &mut Tally,
        request: u64,
        body: &Bytes,
    ) -> Result<Conversed, Failure> {
        let mut outgoing = Outgoing::new(self.pattern.request(tally.class(), request, body));
        let mut limit = Limit::new(self.clock, self.timeouts, connection.timer.take());
        let stamps = Rc::clone(&connection.stamps);
        stamps.arm();
        let step = |cx: &mut Context<'_>| {
            let head = connection.poll_head(&mut outgoing, cx);
            // Recorded in every step, because a request that is cancelled while it waits for the response
            // headers must still be recorded as sent.
            tally.row.sent_ns = stamps.sent();
            head
        };
        let head = limit.bound(&stamps, step).await??;
        let own = OwnConnection { connection, outgoing, body: head.body };
        let mut answer = Answer::One(own);
        self.told(tally, &head.told);
        let answered = self.answered(&mut answer, (head.status, head.retry_after), tally, &mut limit).await;
        let end = answered.map_err(|failure| redirected(failure, &head.told))?;
        let Answer::One(OwnConnection { outgoing, body, .. }) = answer else { return Ok(Conversed::Over(false)) };
        match end {
            BodyEnd::Whole { clean } => {
                connection.timer = Some(limit.into_timer());
                Ok(Conversed::Over(clean && head.keep_alive && outgoing.is_sent()))
            }
            BodyEnd::Awaited(parser) => {
                let keep_alive = head.keep_alive;
                Ok(Conversed::HeldOpen(Box::new(Rest { parser, outgoing, body, keep_alive })))
            }
        }
    }

    async fn converse_on_a_stream(
        &self,
        sessions: &Sessions,
        lease: Lease,
        tally: &mut Tally,
        request: u64,
        body: &Bytes,
    ) -> Result<Option<Box<HeldStream>>, Failure> {
        let Some(heads) = &self.heads else {
            return Err(Failure::new(Outcome::Malformed, "the requests of this run are encoded for HTTP/1.1"));
        };
        let head = heads.request(tally.class(), request, body.len());
        let stamps = Stamps::new(self.clock);
        let mut limit = Limit::new(self.clock, self.timeouts, sessions.timer());
        let mut exchange = Exchange::begin(lease, Rc::clone(&stamps), head, body.clone())?;
        let step = |cx: &mut Context<'_>| {
            let head = exchange.poll_head(cx);
            tally.row.sent_ns = stamps.sent();
            head
        };
        let head = limit.bound(&stamps, step).await??;
        self.told(tally, &head.told);
        let mut answer = Answer::Two(exchange);
        let answered = self.answered(&mut answer, (head.status, head.retry_after), tally, &mut limit).await;
        let end = answered.map_err(|failure| redirected(failure, &head.told))?;
        sessions.keep_timer(limit.into_timer());
        match (end, answer) {
            (BodyEnd::Awaited(parser), Answer::Two(exchange)) => {
                Ok(Some(Box::new(HeldStream::Two { exchange, parser })))
            }
            _ => Ok(None),
        }
    }

    /// Records the times and the request id that the server reported in the head of a response.
    fn told(&self, tally: &mut Tally, told: &Told) {
        tally.server_times(told.times(self.stream));
        if self.stream {
            tally.set_content_kind(told.content_kind());
        }
        tally.row.trace_id = told.id().map(|id| self.presentable(id));
    }

    /// Reads the rest of a response whose head has arrived. `status` and `retry_after` (the pause that the
    /// server requested, in seconds) come from the head. Returns true if no bytes arrived after the end of
    /// the response.
    async fn answered(
        &self,
        answer: &mut Answer<'_>,
        (status, retry_after): (u16, Option<u64>),
        tally: &mut Tally,
        limit: &mut Limit,
    ) -> Result<BodyEnd, Failure> {
        let stamps = answer.stamps();
        tally.row.headers_ns = Some(stamps.last_read());
        tally.row.http_status = Some(status);
        tally.stamped(stamps.by_kernel());
        if !(200..300).contains(&status) {
            let failure = self.error_response(answer, status).await;
            return Err(failure.with(retry_after.map(left_alone)));
        }
        self.progress.signs.add(1);
        if self.stream {
            self.read_stream(answer, tally, limit).await
        } else {
            self.read_whole(answer, tally, limit).await.map(|clean| BodyEnd::Whole { clean })
        }
    }

    async fn error_response(&self, answer: &mut Answer<'_>, status: u16) -> Failure {
        let mut text = Vec::new();
        let read = async {
            let mut more = true;
            while more && text.len() <= MAX_ERROR_BODY {
                let read = poll_fn(|cx| {
                    answer.poll(cx, |bytes| {
                        text.extend_from_slice(bytes);
                        Ok(())
                    })
                });
                more = matches!(read.await, Ok(Progress::More));
            }
        };
        // If the time limit is reached, the part that has arrived is enough for an error message.
        let _ = tokio::time::timeout(ERROR_BODY_TIME, read).await;
        text.truncate(MAX_ERROR_BODY);
        Failure::new(Outcome::Http(status), crate::protocol::server_words(&text))
    }

    /// Reads a streamed response to its end.
    async fn read_stream(
        &self,
        answer: &mut Answer<'_>,
        tally: &mut Tally,
        limit: &mut Limit,
    ) -> Result<BodyEnd, Failure> {
        let mut parser = sse::Parser::new();
        let mut other = OtherBody::new(tally.content_kind());
        let stamps = answer.stamps();
        loop {
            let step = |cx: &mut Context<'_>| {
                answer.poll(cx, |bytes| {
                    tally.row.bytes += bytes.len() as u64;
                    if other.takes(bytes) {
                        self.progress.signs.add(1);
                        return Ok(());
                    }
                    self.take(tally, &mut parser, bytes, stamps.last())
                })
            };
            let next = limit.bound(&stamps, step).await.flatten();
            let read = stamps.last();
            tally.stamped(stamps.by_kernel());
            match next {
                Ok(Progress::More) => {}
                Ok(Progress::Whole { clean }) => {
                    if let Some((data, kind)) = other.body() {
                        return Err(tally.not_a_stream(data, &kind, read.at));
                    }
                    if let Some(event) = parser.finish().map_err(too_large)? {
                        self.progress.token_events.add(u64::from(tally.event(&event, read)?));
                    }
                    if limit.lingers() {
                        self.lingerers.ended_in_time();
                    }
                    return tally.ended(read.at).map(|()| BodyEnd::Whole { clean });
                }
                Err(failure) if tally.is_marked_done() => {
                    tally.ended(read.at)?;
                    // If the connection broke, the response was already complete, so that does not matter.
                    let is_held = failure.outcome == Outcome::Stalled;
                    return Ok(if is_held { BodyEnd::Awaited(parser) } else { BodyEnd::Whole { clean: false } });
                }
                Err(failure) => return Err(failure),
            }
            if tally.row.bytes > MAX_STREAM {
                return Err(Failure::new(Outcome::Malformed, "the stream is longer than 256 MiB"));
            }
            if tally.is_marked_done() {
                if self.lingerers.are_expected() {
                    return tally.ended(read.at).map(|()| BodyEnd::Awaited(parser));
                }
                limit.linger();
            }
        }
    }

    /// Parses `bytes`, which arrived with `read`, and passes every completed event to `tally`.
    pub(super) fn take(
        &self,
        tally: &mut Tally,
        parser: &mut sse::Parser,
        mut bytes: &[u8],
        read: Read,
    ) -> Result<(), Failure> {
        let mut tokens = 0;
        let result = loop {
            match parser.next(&mut bytes) {
                Ok(Some(event)) => match tally.event(&event, read) {
                    Ok(has_text) => tokens += u64::from(has_text),
                    Err(failure) => break Err(failure),
                },
                Ok(None) => break Ok(()),
                Err(error) => break Err(too_large(error)),
            }
        };
        match tokens {
            0 => self.progress.signs.add(1),
            tokens => self.progress.token_events.add(tokens),
        }
        result
    }

    /// Reads a response that is not streamed. Returns true if no bytes arrived after the end of the
    /// response.
    async fn read_whole(&self, answer: &mut Answer<'_>, tally: &mut Tally, limit: &mut Limit) -> Result<bool, Failure> {
        let stamps = answer.stamps();
        let mut data = Vec::new();
        loop {
            let step = |cx: &mut Context<'_>| {
                answer.poll(cx, |bytes| {
                    data.extend_from_slice(bytes);
                    self.progress.signs.add(1);
                    Ok(())
                })
            };
            let progress = limit.bound(&stamps, step).await??;
            tally.stamped(stamps.by_kernel());
            tally.row.bytes = data.len() as u64;
            if data.len() > MAX_WHOLE {
                return Err(Failure::new(Outcome::Malformed, "the response is larger than 64 MiB"));
            }
            if let Progress::Whole { clean } = progress {
                return tally.whole(&data, stamps.last_read()).map(|()| clean);
            }
        }
    }
}

/// How the body of a response ended.
enum BodyEnd {
    /// The body is complete.
    Whole {
        /// Whether no bytes arrived after the end of the response.
        clean: bool,
    },
    /// The response is complete, but the server holds the stream open.
    Awaited(sse::Parser),
}

/// The state of a connection after a response.
enum Conversed {
    /// The response has ended; `true` if the connection can carry another request.
    Over(bool),
    /// The server holds the stream open.
    HeldOpen(Box<Rest>),
}

/// What is left of an exchange on a connection whose stream the server holds open.
struct Rest {
    parser: sse::Parser,
    outgoing: Outgoing,
    body: Body,
    keep_alive: bool,
}

/// Returns the connection to the pool if it can carry another request. Returns the stream if the server holds it open.
fn keep(
    pool: &Pool,
    connection: Connection,
    result: Result<Conversed, Failure>,
) -> Result<Option<Box<HeldStream>>, Failure> {
    match result? {
        Conversed::Over(is_reusable) => {
            if is_reusable {
                pool.keep(connection);
            }
            Ok(None)
        }
        Conversed::HeldOpen(rest) => {
            let Rest { parser, outgoing, body, keep_alive } = *rest;
            Ok(Some(Box::new(HeldStream::One { connection, outgoing, body, keep_alive, parser })))
        }
    }
}

/// A response whose head has arrived, over HTTP/1.1 (`One`) or HTTP/2 (`Two`).
enum Answer<'a> {
    One(OwnConnection<'a>),
    Two(Exchange),
}

/// An HTTP/1.1 connection, with the request that uses it and the response's body.
struct OwnConnection<'a> {
    connection: &'a mut Connection,
    outgoing: Outgoing,
    body: Body,
}

impl Answer<'_> {
    fn stamps(&self) -> Rc<Stamps> {
        match self {
            Answer::One(own) => Rc::clone(&own.connection.stamps),
            Answer::Two(exchange) => Rc::clone(exchange.stamps()),
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        on_data: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Poll<Result<Progress, Failure>> {
        match self {
            Answer::One(OwnConnection { connection, outgoing, body }) => {
                connection.poll_body(outgoing, body, cx, on_data)
            }
            Answer::Two(exchange) => exchange.poll_body(cx, on_data),
        }
    }
}

/// Converts the pause that a server requested (`secs`, in seconds) to an [`Aside`], capped at the longest
/// pause that is honored.
fn left_alone(secs: u64) -> Aside {
    Aside::RetryAfter(Nanos::from_secs(secs.min(LONGEST_RETRY_AFTER_SECS)))
}

/// Adds the target of a redirect to a failure. Redirects are not followed.
fn redirected(failure: Failure, told: &Told) -> Failure {
    match (failure.outcome, told.location()) {
        (Outcome::Http(300..=399), Some(target)) => {
            let text = format!("redirects to {target}; write that address as `url` of the endpoint. {}", failure.text);
            Failure { text, ..failure }
        }
        _ => failure,
    }
}

fn too_large(_: sse::TooLarge) -> Failure {
    Failure::new(Outcome::Malformed, "an event is larger than 16 MiB")
}
