//! Single steps of the hot path, for `benches/ingest`, which prints the cost of each step.
//!
//! These functions take bytes, rows and sockets, so that the types of the hot path stay private and can
//! change freely. The functions are hidden from the documentation because they have no other use.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::expand::RunSpec;
use crate::protocol::Api;
use crate::rows::{Phase, Record, RequestRow};
use crate::units::NonceSeed;
use crate::workload::NonceKey;

use super::clock::Clock;
use super::feed::Feed;
use super::http::{Head, Malformed};
use super::io::Read;
use super::observe::Observer;
use super::progress::Progress;
use super::recorder::Recorder;
use super::share::Share;
use super::sink::{Sink, SinkError};
use super::sse::Parser;
use super::stamp::{self, Now};
use super::start::Start;
use super::tally::{Entry, Tally};
use super::template::Template;

/// The message of a panic if the benchmark's response cannot be read.
const SENSIBLE: &str = "a sensible answer";

/// Parses one response from its bytes on the wire, and passes the pieces of its body to `on_piece`.
pub fn http(wire: &[u8], mut on_piece: impl FnMut(&[u8])) {
    let head = Head::parse(wire).expect(SENSIBLE).expect("a whole head");
    let mut body = head.body;
    let fed = body.feed(&wire[head.length..], |piece| -> Result<(), Malformed> {
        on_piece(piece);
        Ok(())
    });
    assert!(fed.expect(SENSIBLE).ended, "a complete response");
}

/// Splits the pieces of one stream's body into events, and passes the data of each event to `on_data`.
pub fn frame<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, mut on_data: impl FnMut(&[u8])) {
    let mut parser = Parser::new();
    for mut piece in pieces {
        while let Some(event) = parser.next(&mut piece).expect(SENSIBLE) {
            on_data(event.data);
        }
    }
}

/// Parses the data of one event completely. Returns whether the event contains nothing but a text.
pub fn parse(data: &[u8]) -> bool {
    Api::Chat.protocol().event(data).is_ok_and(|part| part.only_text().is_some())
}

/// Reads the events of one stream by template, after a full parse of the first event. Returns how many
/// events could be read by template.
pub fn template(events: &[Vec<u8>]) -> usize {
    let mut template = Template::default();
    let mut read = |data: &Vec<u8>| {
        let known = template.read(data).is_some();
        if !known
            && let Ok(part) = Api::Chat.protocol().event(data)
            && let Some((text, channel)) = part.only_text()
        {
            template.learn(data, text, channel);
        }
        known
    };
    events.iter().filter(|data| read(data)).count()
}

/// Processes one stream as a request does: splits it into events, parses them, and updates the tally. `gap`
/// returns the time before each piece, in nanoseconds.
fn take(pieces: &[&[u8]], tokens: u32, gap: &mut dyn FnMut() -> u64) -> Entry {
    let row = RequestRow { requested_tokens: tokens, ..RequestRow::wanted(0, Phase::Measure, 0) };
    let mut tally = Tally::new(row, Api::Chat.protocol());
    let mut parser = Parser::new();
    let mut at = 0;
    for piece in pieces {
        at += gap();
        tally.row.bytes += piece.len() as u64;
        let mut rest = *piece;
        while let Some(event) = parser.next(&mut rest).expect(SENSIBLE) {
            tally.event(&event, Read { at, delay: Some(0) }).expect("events of a complete response");
        }
    }
    let result = tally.ended(at);
    tally.finish(result).0
}

/// Processes one stream and returns its record.
pub fn record(pieces: &[&[u8]], tokens: u32, gap: &mut dyn FnMut() -> u64) -> Record {
    take(pieces, tokens, gap).unbox().into_record(None).0
}

/// Processes one stream `requests` times and passes each entry to the writer thread, as the executor does.
/// Returns when all records are in `sink`.
///
/// # Errors
///
/// Fails if the sink fails.
pub fn hand_over(
    pieces: &[&[u8]],
    tokens: u32,
    requests: usize,
    gap: &mut dyn FnMut() -> u64,
    sink: Box<dyn Sink>,
) -> Result<(), SinkError> {
    let mut recorder =
        Recorder::start(sink, None, None, Share::WHOLE, Observer::new(Arc::new(Progress::default())), Clock::start())?;
    for _ in 0..requests {
        if !recorder.push(take(pieces, tokens, gap)) {
            break;
        }
    }
    recorder.finish().map(drop)
}

/// Takes the contents of `requests` requests of `spec` from the thread that prepares them, as the executor
/// does; returns their size in bytes.
pub fn contents(spec: &RunSpec, requests: u64) -> u64 {
    let observer = Observer::new(Arc::new(Progress::default()));
    let mut feed =
        Feed::start(spec, Share::WHOLE, NonceKey::new(NonceSeed([7; 16])), None, &observer).expect("a thread");
    let runtime = super::dispatch::runtime().expect("a runtime");
    runtime.block_on(async {
        let (clock, mut bytes) = (Clock::start(), 0);
        for request in 0..requests {
            let start = Start { request, scheduled: 0, released: 0, slot: None };
            let (content, _) = feed.next(&start, clock).await.expect("contents are endless");
            bytes += content.body.len() as u64;
        }
        bytes
    })
}

/// Makes the kernel stamp arriving data on `socket`.
pub fn stamped(socket: &impl AsFd) {
    stamp::enable(socket);
}

/// Reads without waiting and determines when the bytes arrived, as a measured connection does. Returns the
/// number of bytes.
///
/// # Errors
///
/// Fails if nothing can be read now, or if the socket is broken.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    let (read, kernel) = stamp::receive(socket, into)?;
    std::hint::black_box(stamp::arrival(kernel, Now::read(), 0));
    Ok(read)
}
