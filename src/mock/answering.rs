//! One response over HTTP/2: converts the head and the body, which are written in the form of HTTP/1.1, to
//! frames of an HTTP/2 stream.

use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::gone::Gone;

/// Header fields of HTTP/1.1 that are not allowed in HTTP/2 (RFC 9113, section 8.2.2).
const OF_CONNECTIONS: [&str; 2] = ["connection", "transfer-encoding"];
/// Maximum number of header fields in a head that this server writes.
const MOST_FIELDS: usize = 16;

/// One response in progress.
pub(super) struct Answering {
    respond: SendResponse<Bytes>,
    /// The part of the head that has been written so far, until the head is complete.
    head: Vec<u8>,
    /// The stream for the body; `None` until the head is sent.
    send: Option<SendStream<Bytes>>,
}

impl Answering {
    /// Creates a response to which nothing has been written yet.
    pub(super) fn new(respond: SendResponse<Bytes>) -> Answering {
        Answering { respond, head: Vec::new(), send: None }
    }

    /// Writes all bytes, as fast as the client's flow-control windows allow.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        if self.send.is_some() {
            return self.data(bytes).await;
        }
        self.head.extend_from_slice(bytes);
        let Some((response, length)) = response(&self.head) else { return Ok(()) };
        self.send = Some(self.respond.send_response(response, false).map_err(|_| Gone)?);
        let body = self.head.split_off(length);
        self.data(&body).await
    }

    async fn data(&mut self, mut bytes: &[u8]) -> Result<(), Gone> {
        let Some(send) = &mut self.send else { return Err(Gone) };
        while !bytes.is_empty() {
            send.reserve_capacity(bytes.len());
            let room = poll_fn(|context| match send.poll_capacity(context) {
                Poll::Ready(Some(Ok(room))) => Poll::Ready(Ok(room)),
                Poll::Ready(_) => Poll::Ready(Err(Gone)),
                Poll::Pending => send.poll_reset(context).map(|_| Err(Gone)),
            });
            let (now, later) = bytes.split_at(room.await?.min(bytes.len()));
            send.send_data(Bytes::copy_from_slice(now), false).map_err(|_| Gone)?;
            bytes = later;
        }
        Ok(())
    }

    /// Whether the client has cancelled the request, or its connection is gone.
    pub(super) fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<Gone> {
        match &mut self.send {
            Some(send) => send.poll_reset(context).map(|_| Gone),
            None => self.respond.poll_reset(context).map(|_| Gone),
        }
    }

    /// Ends the response. If it is incomplete, its stream is reset.
    pub(super) fn end(&mut self, whole: bool) {
        // Errors do not matter, because sending fails only on a stream that is already gone.
        match &mut self.send {
            Some(send) if whole => drop(send.send_data(Bytes::new(), true)),
            Some(send) => send.send_reset(Reason::INTERNAL_ERROR),
            None => self.respond.send_reset(Reason::INTERNAL_ERROR),
        }
    }
}

/// Parses the head at the beginning of these bytes. Returns the response and the length of the head; `None`
/// while the head is incomplete.
fn response(head: &[u8]) -> Option<(Response<()>, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(length)) = parsed.parse(head) else { return None };
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(parsed.code?).ok()?;
    for field in parsed.headers.iter().filter(|field| !OF_CONNECTIONS.contains(&field.name)) {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        response.headers_mut().insert(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some((response, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::head::json_head;

    #[test]
    fn a_head_of_http_1_1_becomes_one_of_http_2() {
        let head = json_head(503, 7, true);
        assert!(response(&head.as_bytes()[..head.len() - 1]).is_none());
        let (response, length) = response(format!("{head}the body").as_bytes()).unwrap();
        assert_eq!((response.status().as_u16(), length), (503, head.len()));
        let fields = response.headers();
        assert!(fields["content-length"] == "7" && fields["content-type"] == "application/json");
        assert!(fields.contains_key("server") && !fields.contains_key("connection"));
    }
}
