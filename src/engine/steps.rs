//! Single steps of the hot path, for `benches/ingest`, which prints the cost of each step.
//!
//! They are functions over bytes, rows and sockets, so that the types of the hot path stay private and can
//! change freely. They are hidden from the documentation because they have no other use.

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

/// The text of the benchmark's streams.
const SENSIBLE: &str = "a sensible answer";

/// Reads one response from the bytes of the wire, and passes on the pieces of its body.
pub fn http(wire: &[u8], mut on_piece: impl FnMut(&[u8])) {
    let head = Head::parse(wire).expect(SENSIBLE).expect("a whole head");
    let mut body = head.body;
    let fed = body.feed(&wire[head.length..], |piece| -> Result<(), Malformed> {
        on_piece(piece);
        Ok(())
    });
    assert!(fed.expect(SENSIBLE).ended, "a complete response");
}

/// Splits the pieces of one stream's body into events; passes on the data of each.
pub fn frame<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, mut on_data: impl FnMut(&[u8])) {
    let mut parser = Parser::new();
    for mut piece in pieces {
        while let Some(event) = parser.next(&mut piece).expect(SENSIBLE) {
            on_data(event.data);
        }
    }
}

/// Parses the data of one event in full; returns whether it contains only a text.
pub fn parse(data: &[u8]) -> bool {
    Api::Chat.protocol().event(data).is_ok_and(|part| part.only_text().is_some())
}

/// Reads the events of one stream by template, after a full parse of the first event; returns how many
/// could be read that way.
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

/// Processes one stream as a request does: framing, parsing, tally. `gap` returns the time before each
/// piece, in nanoseconds.
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

/// Returns the record of one stream.
pub fn record(pieces: &[&[u8]], tokens: u32, gap: &mut dyn FnMut() -> u64) -> Record {
    take(pieces, tokens, gap).unbox().into_record().0
}

/// Processes one stream `requests` times and passes each to the writer thread, as the executor does;
/// returns when all are in `sink`.
///
/// # Errors The sink's own.
pub fn hand_over(
    pieces: &[&[u8]],
    tokens: u32,
    requests: usize,
    gap: &mut dyn FnMut() -> u64,
    sink: Box<dyn Sink>,
) -> Result<(), SinkError> {
    let mut recorder =
        Recorder::start(sink, None, Share::WHOLE, Observer::new(Arc::new(Progress::default())), Clock::start())?;
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

/// Reads without waiting and determines when the bytes arrived, as a measured connection does;
/// returns their number.
///
/// # Errors Nothing can be read, or the socket is broken.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    let (read, kernel) = stamp::receive(socket, into)?;
    std::hint::black_box(stamp::arrival(kernel, Now::read(), 0));
    Ok(read)
}
