//! Streams that a server holds open after `[DONE]`. The request is over and its slot is free; the connection is read
//! on in the background, for token counts that follow `[DONE]` and for the end of the body, after which the connection
//! can carry another request.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::client::Client;
use super::connection::{Connection, Outgoing, Progress};
use super::http::Body;
use super::http2::Exchange;
use super::limit::GRACE;
use super::links::Links;
use super::sse::Parser;
use super::tally::{Entry, Failure, Tally};

/// How long a stream is read on after `[DONE]`. Then the connection is closed.
const MOST_TIME: Duration = Duration::from_secs(2);
/// Maximum number of streams of a thread that are read on at once. Further connections are closed at `[DONE]`.
const MOST_STREAMS: usize = 1024;
/// If a server holds this many streams in a row open, it is assumed to do so with every stream, and requests no longer
/// wait for the end of the body.
const IN_A_ROW: u32 = 3;

/// The streams of one thread that are read on.
#[derive(Debug, Default)]
pub(crate) struct Lingerers {
    open: Cell<usize>,
    /// Number of streams in a row that did not end in time.
    in_a_row: Cell<u32>,
}

/// A request whose stream is held open.
pub(crate) struct HeldOpen {
    /// The stream.
    pub(super) stream: Box<HeldStream>,
    /// The state of the request.
    pub(super) tally: Box<Tally>,
    /// When the slot of the request became free, in nanoseconds since the run's start.
    pub(super) freed: u64,
}

/// A stream that is held open, over HTTP/1.1 (`One`) or HTTP/2 (`Two`).
pub(crate) enum HeldStream {
    One {
        /// The connection.
        connection: Connection,
        /// The request.
        outgoing: Outgoing,
        /// The rest of the response's body.
        body: Body,
        /// Whether the connection may carry another request after the body.
        keep_alive: bool,
        /// The parser of the stream.
        parser: Parser,
    },
    Two {
        /// The exchange.
        exchange: Exchange,
        /// The parser of the stream.
        parser: Parser,
    },
}

impl Lingerers {
    /// Whether another stream may be read on.
    pub(crate) fn have_room(&self) -> bool {
        self.open.get() < MOST_STREAMS
    }

    /// Whether the server holds every stream open, as far as is known.
    pub(crate) fn are_expected(&self) -> bool {
        self.in_a_row.get() >= IN_A_ROW
    }

    /// Records that the body of a response ended right after `[DONE]`.
    pub(crate) fn ended_in_time(&self) {
        self.in_a_row.set(0);
    }
}

impl HeldStream {
    /// Reads a part of the body and passes its data to `on_data`, with the stream's parser.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut on_data: impl FnMut(&mut Parser, &[u8]),
    ) -> Poll<Result<Progress, Failure>> {
        match self {
            HeldStream::One { connection, outgoing, body, parser, .. } => {
                let pass = |bytes: &[u8]| {
                    on_data(parser, bytes);
                    Ok(())
                };
                connection.poll_body(outgoing, body, cx, pass)
            }
            HeldStream::Two { exchange, parser } => exchange.poll_body(cx, |bytes| {
                on_data(parser, bytes);
                Ok(())
            }),
        }
    }
}

impl Client {
    /// Reads a stream on until the server ends it, for a limited time. Returns the entry of its request.
    pub(crate) async fn read_on(&self, held: HeldOpen) -> Entry {
        let HeldOpen { mut stream, mut tally, freed } = held;
        let lingerers = &self.lingerers;
        lingerers.open.set(lingerers.open.get() + 1);
        let began = Instant::now();
        let is_clean = {
            let rest = pin!(tokio::time::timeout(MOST_TIME, self.rest_of(&mut stream, &mut tally)));
            self.cut.or(rest).await.is_some_and(|end| end.unwrap_or(false))
        };
        lingerers.open.set(lingerers.open.get() - 1);
        if is_clean && began.elapsed() < GRACE {
            lingerers.ended_in_time();
        } else {
            lingerers.in_a_row.set(lingerers.in_a_row.get().saturating_add(1));
        }
        if let (HeldStream::One { connection, outgoing, keep_alive, .. }, Links::One(pool)) = (*stream, &self.links)
            && is_clean
            && keep_alive
            && outgoing.is_sent()
        {
            pool.keep(connection);
        }
        self.completed(tally, freed, Ok(())).0
    }

    /// Reads the rest of a stream. Returns whether its body ended, with no bytes after it.
    async fn rest_of(&self, stream: &mut HeldStream, tally: &mut Tally) -> bool {
        loop {
            let read = poll_fn(|cx| {
                stream.poll(cx, |parser, bytes| {
                    // The response is complete, so nothing here can spoil it.
                    let _ = self.take(tally, parser, bytes, tally.last_read());
                })
            });
            match read.await {
                Ok(Progress::More) => {}
                Ok(Progress::Whole { clean }) => return clean,
                Err(_) => return false,
            }
        }
    }
}
