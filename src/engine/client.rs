//! One request, from the moment it is wanted to its record. Nothing is retried.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use hyper::body::{Body as _, Incoming};
use tokio::sync::Notify;

use crate::plan::Timeouts;
use crate::rows::Outcome;

use super::clock::Clock;
use super::connection::Connection;
use super::io::Read;
use super::limit::Limit;
use super::pacer::Start;
use super::pattern::Pattern;
use super::pool::Pool;
use super::progress::Progress;
use super::sse;
use super::tally::{Entry, Failure, Tally};
use super::target::Target;

/// The largest body that is read whole: of an answer that is not streamed.
const MAX_WHOLE: usize = 64 << 20;
/// The most that is read of the body of an error response.
const MAX_ERROR_BODY: usize = 64 << 10;
/// The most that one stream may send: its text is kept until it ends.
const MAX_STREAM: u64 = 256 << 20;
/// How long a broken connection waits for the news that the server behind it has ended, and how often it looks.
const NEWS_OF_DEATH: (u32, Duration) = (20, Duration::from_millis(5));
/// How long the body of an error response is read.
const ERROR_BODY_TIME: Duration = Duration::from_secs(2);

/// What all requests of a run share, whichever thread performs them.
pub struct Common {
    /// The run's clock.
    pub clock: Clock,
    /// Where requests go.
    pub target: Arc<Target>,
    /// Limits of a request.
    pub timeouts: Timeouts,
    /// Whether answers come token by token.
    pub stream: bool,
    /// Every request but for its number and its body.
    pub pattern: Pattern,
    /// The run is over: what is under way is cut.
    pub cut: Cut,
    /// Live counters.
    pub progress: Arc<Progress>,
}

/// What performs the requests of one thread.
pub struct Client {
    /// What it shares with the others.
    pub common: Arc<Common>,
    /// Its connections.
    pub pool: Pool,
}

impl std::ops::Deref for Client {
    type Target = Common;
    fn deref(&self) -> &Common {
        &self.common
    }
}

/// The end of a run, told to every request at once, also to one that has not begun to listen.
#[derive(Debug, Default)]
pub struct Cut {
    over: AtomicBool,
    notify: Notify,
}

impl Cut {
    /// Ends every request under way.
    pub fn now(&self) {
        self.over.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// What `work` comes to; none where it was cut. To be awaited by a task directly: it listens with the waker of its
    /// first poll.
    async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut notified, mut work) = (pin!(self.notify.notified()), pin!(work));
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
pub struct Order {
    /// Its start.
    pub start: Start,
    /// Its body, encoded.
    pub body: Bytes,
    /// Its row as far as it is known before it is sent.
    pub tally: Box<Tally>,
}

/// A request that has ended.
pub struct Ended {
    /// The start it came from.
    pub start: Start,
    /// What the writer takes.
    pub entry: Entry,
    /// The answer's content.
    pub answer: String,
    /// When the place it held became free.
    pub freed: u64,
}

impl Client {
    /// Performs one request.
    pub async fn perform(&self, order: Order) -> Ended {
        let Order { start, body, mut tally } = order;
        let result = {
            let exchange = self.exchange(&mut tally, start.request, body);
            let cut = || Err(Failure::new(Outcome::CutAtDrain, "still under way at the end of drain"));
            self.cut.or(exchange).await.unwrap_or_else(cut)
        };
        let freed = tally.freed().unwrap_or_else(|| self.clock.now());
        tally.row.ended_ns = Some(freed);
        tally.row.finish_reason = tally.row.finish_reason.take().map(|reason| self.presentable(&reason));
        let result = match result {
            Ok(()) => Ok(()),
            Err(failure) => Err(self.explain(failure).await),
        };
        let (entry, answer) = tally.finish(result);
        Ended { start, entry, answer, freed }
    }

    /// Puts a failure into its last words: without secrets, and with the death of a server that we started.
    async fn explain(&self, mut failure: Failure) -> Failure {
        failure.text = self.presentable(&failure.text);
        if matches!(failure.outcome, Outcome::Connect | Outcome::Reset) && self.server_died().await {
            failure = Failure::new(Outcome::ServerDied, format!("the server process has ended: {}", failure.text));
        }
        failure
    }

    /// The beginning of a server's words without the secret. In this order: a cut could leave a part of the secret.
    fn presentable(&self, text: &str) -> String {
        super::answer::excerpt(&self.target.redact(text))
    }

    /// Whether the server process that we started is gone. Its connections break a moment before that is known.
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

    async fn exchange(&self, tally: &mut Tally, request: u64, body: Bytes) -> Result<(), Failure> {
        while let Some(mut connection) = self.pool.kept().await {
            let result = self.converse(&mut connection, tally, request, body.clone()).await;
            // The server had closed it: nothing of the request was written, so this is no second sending.
            let unused = tally.row.sent_ns.is_none() && matches!(&result, Err(f) if f.outcome == Outcome::Reset);
            if !unused {
                return self.keep(connection, result);
            }
        }
        let (mut connection, opening) = self.pool.open().await?;
        tally.row.dns_ns = opening.dns;
        tally.row.connect_ns = opening.connect;
        tally.row.tls_ns = opening.tls;
        let result = self.converse(&mut connection, tally, request, body).await;
        self.keep(connection, result)
    }

    /// Keeps a connection that can carry another request.
    fn keep(&self, connection: Box<Connection>, result: Result<Reusable, Failure>) -> Result<(), Failure> {
        let Reusable(reusable) = result?;
        if reusable {
            self.pool.keep(connection);
        }
        Ok(())
    }

    async fn converse(
        &self,
        connection: &mut Connection,
        tally: &mut Tally,
        request: u64,
        body: Bytes,
    ) -> Result<Reusable, Failure> {
        let request = self.pattern.request(request, body);
        let mut limit = Limit::new(self.clock, self.timeouts, connection.timer.take());
        let response = {
            let mut answer = pin!(connection.send(request));
            let stamps = std::rc::Rc::clone(&connection.stamps);
            let step = |cx: &mut Context<'_>| {
                connection.drive(cx);
                // Noted at once: a request that is cut while it waits for its headers was sent all the same.
                tally.row.sent_ns = stamps.sent();
                answer.as_mut().poll(cx)
            };
            limit.bound(&stamps, step).await?.map_err(broken)?
        };
        tally.row.headers_ns = Some(connection.stamps.last_read());
        tally.stamped(connection.stamps.by_kernel());
        tally.row.http_status = Some(response.status().as_u16());
        if !response.status().is_success() {
            return Err(self.error_response(connection, response).await);
        }
        let mut incoming = response.into_body();
        let result = if self.stream {
            self.read_stream(connection, &mut incoming, tally, &mut limit).await
        } else {
            self.read_whole(connection, &mut incoming, tally, &mut limit).await
        };
        connection.timer = Some(limit.into_timer());
        result
    }

    async fn error_response(&self, connection: &mut Connection, response: Response<Incoming>) -> Failure {
        let status = response.status().as_u16();
        let mut incoming = response.into_body();
        let mut text = Vec::new();
        let read = async {
            while let Some(Ok(chunk)) = poll_fn(|cx| poll_chunk(connection, &mut incoming, cx)).await {
                text.extend_from_slice(&chunk);
                if text.len() > MAX_ERROR_BODY {
                    break;
                }
            }
        };
        // What came until then is enough for a message.
        let _ = tokio::time::timeout(ERROR_BODY_TIME, read).await;
        Failure::new(Outcome::Http(status), super::answer::server_words(&text))
    }

    async fn read_stream(
        &self,
        connection: &mut Connection,
        incoming: &mut Incoming,
        tally: &mut Tally,
        limit: &mut Limit,
    ) -> Result<Reusable, Failure> {
        let mut parser = sse::Parser::new();
        let stamps = std::rc::Rc::clone(&connection.stamps);
        loop {
            let next = limit.bound(&stamps, |cx| poll_chunk(connection, incoming, cx)).await;
            let read = stamps.last();
            tally.stamped(stamps.by_kernel());
            match next {
                Ok(Some(Ok(chunk))) => {
                    tally.row.bytes += chunk.len() as u64;
                    self.take(tally, &mut parser, &chunk, read)?;
                }
                Ok(None) => {
                    if let Some(event) = parser.finish().map_err(too_large)? {
                        self.progress.token_events.add(u64::from(tally.event(&event, read)?));
                    }
                    return tally.ended(read.at).map(|()| Reusable(true));
                }
                // The answer was whole; what came after it does not matter.
                _ if tally.is_marked_done() => return tally.ended(read.at).map(|()| Reusable(false)),
                Ok(Some(Err(error))) => return Err(broken(error)),
                Err(failure) => return Err(failure),
            }
            if tally.row.bytes > MAX_STREAM {
                return Err(Failure::new(Outcome::Malformed, "the stream is longer than 256 MiB"));
            }
            if tally.is_marked_done() {
                limit.linger();
            }
        }
    }

    /// Tells `tally` of every event that `bytes`, which came with `read`, complete.
    fn take(&self, tally: &mut Tally, parser: &mut sse::Parser, mut bytes: &[u8], read: Read) -> Result<(), Failure> {
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
        self.progress.token_events.add(tokens);
        result
    }

    async fn read_whole(
        &self,
        connection: &mut Connection,
        incoming: &mut Incoming,
        tally: &mut Tally,
        limit: &mut Limit,
    ) -> Result<Reusable, Failure> {
        let stamps = std::rc::Rc::clone(&connection.stamps);
        let mut data = Vec::new();
        while let Some(chunk) = limit.bound(&stamps, |cx| poll_chunk(connection, incoming, cx)).await? {
            data.extend_from_slice(&chunk.map_err(broken)?);
            tally.stamped(stamps.by_kernel());
            tally.row.bytes = data.len() as u64;
            if data.len() > MAX_WHOLE {
                return Err(Failure::new(Outcome::Malformed, "the answer is larger than 64 MiB"));
            }
        }
        tally.whole(&data, stamps.last_read())?;
        Ok(Reusable(true))
    }
}

/// Whether the connection can carry another request.
struct Reusable(bool);

/// The next piece of a body. The connection gets to work before and after the body says that it wants more.
fn poll_chunk(
    connection: &mut Connection,
    incoming: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<hyper::Result<Bytes>>> {
    loop {
        let frame = match Pin::new(&mut *incoming).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                connection.drive(cx);
                std::task::ready!(Pin::new(&mut *incoming).poll_frame(cx))
            }
        };
        match frame {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            // Trailers carry nothing that is measured.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data)));
                }
            }
        }
    }
}

fn too_large(_: sse::TooLarge) -> Failure {
    Failure::new(Outcome::Malformed, "an event is larger than 16 MiB")
}

/// A connection that broke under a request.
fn broken(error: hyper::Error) -> Failure {
    let mut text = error.to_string();
    let mut malformed = error.is_parse();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        // hyper's words for chunks that are none.
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        malformed |= matches!(kind, Some(std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData));
        source = cause.source();
    }
    let outcome = if malformed { Outcome::Malformed } else { Outcome::Reset };
    Failure::new(outcome, text)
}
