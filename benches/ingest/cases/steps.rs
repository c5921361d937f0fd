//! The cost of each step of the hot path on a recorded stream of the mock, and the cost of the whole path.
//! The cost is the CPU time of all threads instead of elapsed time, so that it includes the writer's work.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::time::{ClockId, clock_gettime};
use sweepline::engine::{Sink, SinkError, steps};
use sweepline::rows::{self, Journal, Record, RunLabels, Table};

use crate::args::Args;
use crate::child::Done;
use crate::mock::Mock;
use crate::report::Report;
use crate::stats::Rounds;

use super::plan::{bodies, body, plan};
use super::streams;

/// Tokens of the recorded stream.
const TOKENS: u32 = 128;
/// Number of streams in one measurement of a step.
const STREAMS: usize = 2_000;

/// A recorded stream: the bytes on the wire, the pieces of the body in them, and the data of its events.
struct Recorded {
    wire: Vec<u8>,
    pieces: Vec<Vec<u8>>,
    events: Vec<Vec<u8>>,
}

/// Prints the table.
pub fn steps(args: &Args, report: &mut Report) {
    report.head("steps: CPU of each step for a stream of 128 tokens, medians of the rounds");
    let recorded = Recorded::take();
    let events = recorded.events.len() as f64;
    let line = |what: &str, costs: &mut dyn FnMut() -> f64| {
        let cost = Rounds::of((0..args.rounds).map(|_| costs())).median;
        report.say(&format!("{what:<64} {:>8.0} ns/event {:>10.0} ns/request", cost / events, cost));
    };
    line("bare reader (HTTP), events share writes", &mut || of_process(streams::bare(args, &[], TOKENS)));
    line("sweepline, all of it, events share writes", &mut || of_process(streams::ours(args, &[], TOKENS)));
    let each: &[&str] = &["--write-per-event"];
    line("bare reader (HTTP), one write per event", &mut || of_process(streams::bare(args, each, TOKENS)));
    line("sweepline, all of it, one write per event", &mut || of_process(streams::ours(args, each, TOKENS)));
    let bodies = bodies(&plan(1, TOKENS, "batch_size: [1]", "measure: 1s"));
    let mut number = 0..;
    line("making a request's text and body", &mut || per_stream(|| keep(number.next().map(&bodies))));
    let reads = recorded.events.len();
    line("stamping: read(2) for each event, no stamp", &mut || reading(reads, plain_read));
    line("stamping: recvmsg(2) with the kernel's stamp and both clocks", &mut || reading(reads, steps::receive));
    let pieces = recorded.pieces();
    line("reading HTTP: head and chunks", &mut || per_stream(|| steps::http(&recorded.wire, |piece| keep(piece))));
    line("framing into events", &mut || per_stream(|| steps::frame(pieces.iter().copied(), |data| keep(data))));
    line("parsing each event in full", &mut || {
        per_stream(|| keep(recorded.events.iter().filter(|e| steps::parse(e)).count()))
    });
    line("parsing by template", &mut || per_stream(|| keep(steps::template(&recorded.events))));
    line("framing, parsing, tally", &mut || per_stream(|| keep(steps::record(&pieces, TOKENS, &mut gaps()))));
    line("  the same, handed over to the writer thread", &mut || recording(&pieces, Box::new(Nowhere)));
    line("  the same, written into the journal", &mut || journalled(&pieces).0);
    line("sealing the journal into Parquet", &mut || sealing(&pieces).0);
    line("reading the Parquet files back before the commit", &mut || sealing(&pieces).1);
}

/// Keeps the compiler from removing the computation of `value`.
fn keep<T>(value: T) {
    std::hint::black_box(value);
}

/// Returns the nanoseconds of CPU time per stream of a child process.
fn of_process(done: Done) -> f64 {
    done.cpu.as_nanos() as f64 / done.seen.streams as f64
}

/// Returns the CPU time of this process so far, in nanoseconds.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Returns the cost of `work`, in nanoseconds of CPU time.
fn cost<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = cpu();
    let made = work();
    (cpu() - before, made)
}

fn per_stream(mut work: impl FnMut()) -> f64 {
    cost(|| (0..STREAMS).for_each(|_| work())).0 / STREAMS as f64
}

/// Returns times between events that vary slightly, like real times, because equal times would compress too
/// well.
fn gaps() -> impl FnMut() -> u64 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        5_000_000 + (state >> 44)
    }
}

impl Recorded {
    /// Records one stream of a mock.
    fn take() -> Recorded {
        let mock = Mock::start(&["--ttft", "0s", "--itl", "0s"]);
        let body = body(&plan(mock.port, TOKENS, "batch_size: [1]", "measure: 1s"));
        let mut stream = TcpStream::connect(("127.0.0.1", mock.port)).expect("the mock listens");
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).expect("a request is taken");
        let mut wire = Vec::new();
        stream.read_to_end(&mut wire).expect("a whole answer");
        let mut pieces = Vec::new();
        steps::http(&wire, |piece| pieces.push(piece.to_vec()));
        let mut events = Vec::new();
        steps::frame(pieces.iter().map(Vec::as_slice), |data| events.push(data.to_vec()));
        assert!(events.len() > TOKENS as usize, "a whole stream");
        Recorded { wire, pieces, events }
    }

    fn pieces(&self) -> Vec<&[u8]> {
        self.pieces.iter().map(Vec::as_slice).collect()
    }
}

/// A function that reads from a socket.
type Receive = fn(std::os::fd::BorrowedFd<'_>, &mut [MaybeUninit<u8>]) -> std::io::Result<usize>;

fn plain_read(socket: std::os::fd::BorrowedFd<'_>, into: &mut [MaybeUninit<u8>]) -> std::io::Result<usize> {
    Ok(rustix::io::read(socket, into).map(|(read, _)| read.len())?)
}

/// Returns the cost of `reads` reads of an event's size, from a socket that contains all of them.
fn reading(reads: usize, receive: Receive) -> f64 {
    /// An event of a chat stream with the size line of its chunk.
    const SIZE: usize = 220;
    const TIMES: usize = 50;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut sender = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (receiver, _) = listener.accept().expect("a connection");
    steps::stamped(&receiver);
    let mut room = [MaybeUninit::uninit(); SIZE];
    let mut total = 0.0;
    for _ in 0..TIMES {
        for _ in 0..reads {
            sender.write_all(&[b'x'; SIZE]).expect("room in the socket");
        }
        let read =
            || (0..reads).for_each(|_| keep(receive(receiver.as_fd(), &mut room).expect("bytes that are there")));
        total += cost(read).0;
    }
    total / TIMES as f64
}

/// Accepts all rows and discards them.
struct Nowhere;

impl Sink for Nowhere {
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError> {
        keep(records);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A journal as the engine's sink.
struct Journalled(Journal);

impl Sink for Journalled {
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError> {
        Ok(self.0.append(records)?)
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        Ok(self.0.finish()?)
    }
}

/// Returns the cost of receiving and recording a stream.
fn recording(pieces: &[&[u8]], sink: Box<dyn Sink>) -> f64 {
    let work = || steps::hand_over(pieces, TOKENS, STREAMS, &mut gaps(), sink).expect("rows that are taken");
    cost(work).0 / STREAMS as f64
}

/// Returns the cost of receiving a stream and recording it in a journal, and the journal's folder.
fn journalled(pieces: &[&[u8]]) -> (f64, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let journal = Journal::create(&folder.path().join("journal"), &RunLabels::default()).expect("a journal");
    (recording(pieces, Box::new(Journalled(journal))), folder)
}

/// Returns the cost per stream of sealing, and of reading back.
fn sealing(pieces: &[&[u8]]) -> (f64, f64) {
    let (_, folder) = journalled(pieces);
    let dir = folder.path();
    let (sealing, rows) = cost(|| rows::seal(&dir.join("journal"), dir).expect("a sealed journal"));
    assert_eq!(rows, STREAMS as u64);
    let check = |table: Table| rows::check(&dir.join(table.file()), table).expect("whole files");
    let (checking, ()) = cost(|| keep([Table::Requests, Table::Events].map(check)));
    (sealing / STREAMS as f64, checking / STREAMS as f64)
}
