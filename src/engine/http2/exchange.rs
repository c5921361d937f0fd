//! One request on an HTTP/2 connection, and its response.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::{Request, header};

use super::failure::failed;
use super::ledger::{Ledger, Track};
use super::session::Lease;
use crate::engine::connection::Progress;
use crate::engine::io::Stamps;
use crate::engine::tally::Failure;
use crate::engine::told::{self, Told};
use crate::rows::Outcome;

/// A request in flight. Dropping it cancels the rest of the stream and signals that to the server; the
/// connection stays open.
pub(crate) struct Exchange {
    // Fields are dropped in this order: the stream before its slot.
    answer: Answer,
    /// Sends the rest of the body. Kept because the server's flow-control windows may not have let all of
    /// it through yet.
    _body: SendStream<Bytes>,
    track: Rc<Track>,
    ledger: Rc<Ledger>,
    stream: u32,
    /// The times of this request's write and reads, in the same form as for a request with its own
    /// connection.
    stamps: Rc<Stamps>,
    lease: Lease,
}

enum Answer {
    Awaited(ResponseFuture),
    Body(RecvStream),
}

/// Tells when a request was written to its connection.
pub(crate) struct Written(Rc<Track>);

impl Written {
    /// Returns when the request's head was written, in nanoseconds since the run's start; `None` if it was not.
    pub(crate) fn at(&self) -> Option<u64> {
        self.0.written()
    }
}

/// The head of a response.
pub(crate) struct Head {
    pub(crate) status: u16,
    /// The pause that a 429 or 503 response requests, in seconds; `None` if it requests none.
    pub(crate) retry_after: Option<u64>,
    /// The times and the request id that the server reported.
    pub(crate) told: Told,
}

impl Exchange {
    /// Passes a request to the task that drives the connection, which writes the request the next time it
    /// runs.
    pub(crate) fn begin(lease: Lease, stamps: Rc<Stamps>, head: Request<()>, body: Bytes) -> Result<Exchange, Failure> {
        let (mut send, ledger) = lease.open()?;
        stamps.arm();
        let refused = |error: h2::Error| failed(&error, ledger.is_settled());
        let (answer, mut sending) = send.send_request(head, body.is_empty()).map_err(refused)?;
        let stream = answer.stream_id().as_u32();
        // The connection's task runs on the same thread, so it writes nothing before this task waits.
        let track = ledger.follow(stream);
        let given = if body.is_empty() { Ok(()) } else { sending.send_data(body, true) };
        let refused = given.map_err(refused);
        let exchange =
            Exchange { answer: Answer::Awaited(answer), _body: sending, track, ledger, stream, stamps, lease };
        refused.map(|()| exchange)
    }

    /// Returns the stamps of this request.
    pub(crate) fn stamps(&self) -> &Rc<Stamps> {
        &self.stamps
    }

    /// Returns what tells when the request was written.
    pub(crate) fn written(&self) -> Written {
        Written(Rc::clone(&self.track))
    }

    /// Waits for the head of the response.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Head, Failure>> {
        let polled = match &mut self.answer {
            Answer::Awaited(answer) => std::pin::Pin::new(answer).poll(cx),
            Answer::Body(_) => return Poll::Ready(Err(Failure::new(Outcome::Malformed, "the head arrived twice"))),
        };
        self.stamps.left(self.track.sent(cx));
        let response = match ready!(polled) {
            Ok(response) => response,
            Err(error) => return Poll::Ready(Err(self.failed(&error))),
        };
        if let Some(read) = self.track.head() {
            self.stamps.saw(read);
        }
        let (head, body) = response.into_parts();
        self.answer = Answer::Body(body);
        let status = head.status.as_u16();
        let retry_after = matches!(status, 429 | 503).then(|| head.headers.get(header::RETRY_AFTER)).flatten();
        let retry_after = retry_after.and_then(|value| told::retry_after(value.as_bytes()));
        let mut told = Told::default();
        head.headers.iter().for_each(|(name, value)| told.field(name.as_str(), value.as_bytes()));
        Poll::Ready(Ok(Head { status, retry_after, told }))
    }

    /// Takes the next frame of the response's body and passes its data to `on_data`; stops if `on_data`
    /// fails.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        mut on_data: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Poll<Result<Progress, Failure>> {
        let Answer::Body(body) = &mut self.answer else {
            return Poll::Ready(Err(Failure::new(Outcome::Malformed, "the body arrived before the head")));
        };
        let data = match ready!(body.poll_data(cx)) {
            Some(Ok(data)) => data,
            Some(Err(error)) => return Poll::Ready(Err(self.failed(&error))),
            None => {
                if let Some(read) = self.track.end() {
                    self.stamps.saw(read);
                }
                return Poll::Ready(Ok(Progress::Whole { clean: true }));
            }
        };
        if let Some(read) = self.track.next() {
            self.stamps.saw(read);
        }
        // Returns the capacity at once, so that the server never waits for the client. The call cannot
        // fail, because the bytes have just arrived.
        let _ = body.flow_control().release_capacity(data.len());
        if !data.is_empty() {
            on_data(&data)?;
        }
        Poll::Ready(Ok(Progress::More))
    }

    /// Returns the failure of this request, and stamps it with the frame that ended the stream, if any.
    fn failed(&self, error: &h2::Error) -> Failure {
        if let Some(read) = self.track.end() {
            self.stamps.saw(read);
        }
        // The error of a stream does not explain why its connection ended, but the connection keeps the
        // reason.
        match error.is_io() || error.is_go_away() {
            true => self.lease.open().err().unwrap_or_else(|| failed(error, self.ledger.is_settled())),
            false => failed(error, self.ledger.is_settled()),
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.ledger.forget(self.stream);
    }
}
