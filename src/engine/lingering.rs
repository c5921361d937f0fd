//! Streams that a server holds open after `[DONE]`. The request is over and its slot is free; the connection is read
//! on in the background (`read_on`).

use std::cell::Cell;
use std::task::{Context, Poll};

use super::connection::{Connection, Outgoing, Progress};
use super::http::Body;
use super::http2::Exchange;
use super::sse::Parser;
use super::tally::{Failure, Tally};

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

    /// Records that a stream is read on.
    pub(crate) fn begin(&self) {
        self.open.set(self.open.get() + 1);
    }

    /// Records that a stream is no longer read on; `in_time` states whether it ended right after `[DONE]`.
    pub(crate) fn end(&self, in_time: bool) {
        self.open.set(self.open.get() - 1);
        self.in_a_row.set(if in_time { 0 } else { self.in_a_row.get().saturating_add(1) });
    }

    /// Records that the body of a response ended right after `[DONE]`.
    pub(crate) fn ended_in_time(&self) {
        self.in_a_row.set(0);
    }
}

impl HeldStream {
    /// Reads a part of the body and passes its data to `on_data`, with the stream's parser.
    pub(crate) fn poll(
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
