//! Reads streams on that a server holds open after `[DONE]`, in the background: for token counts that follow `[DONE]`, and
//! for the end of the body, after which the connection can carry another request.

use std::future::poll_fn;
use std::pin::pin;
use std::time::{Duration, Instant};

use super::client::Client;
use super::connection::Progress;
use super::limit::GRACE;
use super::lingering::{HeldOpen, HeldStream};
use super::links::Links;
use super::tally::{Entry, Tally};

/// How long a stream is read on after `[DONE]`. Then the connection is closed.
const MOST_TIME: Duration = Duration::from_secs(2);

impl Client {
    /// Reads a stream on until the server ends it, for a limited time. Returns the entry of its request.
    pub(crate) async fn read_on(&self, held: HeldOpen) -> Entry {
        let HeldOpen { mut stream, mut tally, freed } = held;
        self.lingerers.begin();
        let began = Instant::now();
        let is_clean = {
            let rest = pin!(tokio::time::timeout(MOST_TIME, self.rest_of(&mut stream, &mut tally)));
            self.cut.or(rest).await.is_some_and(|end| end.unwrap_or(false))
        };
        self.lingerers.end(is_clean && began.elapsed() < GRACE);
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
                    tally.row.bytes += bytes.len() as u64;
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
