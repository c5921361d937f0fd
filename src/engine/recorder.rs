//! From the hot path to the disk: entries go in batches through a bounded channel to a thread that writes them, and that
//! thread looks at the run's counters once a second.
//!
//! The hot path never wakes the writer but when much has gathered: it looks by itself every 20 ms.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::rows::{Record, Sample};

use super::clock::Clock;
use super::progress::Progress;
use super::tally::Entry;

/// Entries in one hand-over: one at a time costs a quarter more (CRATES).
const BATCH: usize = 16;
/// Bytes of gaps that end a batch before it is full, so that a full channel is bounded in memory too.
const BATCH_BYTES: usize = 32 << 10;
/// Batches that may wait for the writer: 32 MiB of gaps at most. A full channel blocks the engine, which its lateness then
/// shows; nothing is lost.
const BACKLOG: usize = 1024;
/// Batches that wait before the writer is woken.
const WAKE_AT: usize = BACKLOG / 4;
/// How often the writer looks for batches.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Records, or gaps of records, that make one batch of the file.
const WRITE_AT: (usize, usize) = (1024, 256 << 10);
/// How long a record waits for others to be written with, in nanoseconds.
const WRITE_AFTER: u64 = 100_000_000;
/// Time between two samples, in nanoseconds.
const SAMPLE_EVERY: u64 = 1_000_000_000;

/// Why a sink cannot take rows.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;

/// Where rows go.
pub trait Sink: Send {
    /// Takes some records. After an error no more come.
    fn append(&mut self, records: &[Record]) -> Result<(), SinkError>;
    /// All records have come.
    fn finish(self: Box<Self>) -> Result<(), SinkError>;
}

/// The engine's end of the channel.
pub struct Recorder {
    batch: Vec<Entry>,
    batch_bytes: usize,
    sender: Option<SyncSender<Vec<Entry>>>,
    /// Batches that wait for the writer.
    backlog: Arc<AtomicUsize>,
    writer: Option<JoinHandle<Result<Vec<Sample>, SinkError>>>,
}

impl Recorder {
    /// Starts the writer thread.
    pub fn start(sink: Box<dyn Sink>, progress: Arc<Progress>, clock: Clock) -> std::io::Result<Recorder> {
        let (sender, receiver) = sync_channel(BACKLOG);
        let backlog = Arc::new(AtomicUsize::new(0));
        let writer = Writer {
            sink,
            receiver,
            backlog: Arc::clone(&backlog),
            progress,
            clock,
            records: Vec::with_capacity(WRITE_AT.0),
            gaps: 0,
            oldest: 0,
            samples: Vec::new(),
        };
        let writer = std::thread::Builder::new().name("writer".to_owned()).spawn(move || writer.run())?;
        let batch = Vec::with_capacity(BATCH);
        Ok(Recorder { batch, batch_bytes: 0, sender: Some(sender), backlog, writer: Some(writer) })
    }

    /// Takes one entry. False once the writer has given up: `finish` says why.
    pub fn push(&mut self, entry: Entry) -> bool {
        self.batch_bytes += entry.size();
        self.batch.push(entry);
        (self.batch.len() < BATCH && self.batch_bytes < BATCH_BYTES) || self.flush()
    }

    fn flush(&mut self) -> bool {
        self.batch_bytes = 0;
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        if self.backlog.fetch_add(1, Relaxed) >= WAKE_AT {
            self.wake();
        }
        self.sender.as_ref().is_some_and(|sender| sender.send(batch).is_ok())
    }

    fn wake(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }

    /// Hands over what is left and waits until it is written. Gives the samples of the run.
    pub fn finish(mut self) -> Result<Vec<Sample>, SinkError> {
        self.flush();
        self.sender = None;
        self.wake();
        let writer = self.writer.take().expect("finish is called once");
        writer.join().unwrap_or_else(|_| Err("the writer thread panicked".into()))
    }
}

/// The thread behind the channel.
struct Writer {
    sink: Box<dyn Sink>,
    receiver: Receiver<Vec<Entry>>,
    backlog: Arc<AtomicUsize>,
    progress: Arc<Progress>,
    clock: Clock,
    /// What came and is not written yet.
    records: Vec<Record>,
    /// Gaps in them.
    gaps: usize,
    /// When the first of them came.
    oldest: u64,
    samples: Vec<Sample>,
}

impl Writer {
    fn run(mut self) -> Result<Vec<Sample>, SinkError> {
        let mut next_sample = 0;
        loop {
            let now = self.clock.now();
            if now >= next_sample {
                sample(&mut self.samples, &self.progress, self.clock);
                next_sample = (now / SAMPLE_EVERY + 1) * SAMPLE_EVERY;
            }
            let ended = self.take(now)?;
            if ended {
                break;
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
        self.write()?;
        sample(&mut self.samples, &self.progress, self.clock);
        self.sink.finish()?;
        Ok(self.samples)
    }

    /// Takes what has come, and writes where that is enough or has waited for long. True when no more can come.
    fn take(&mut self, now: u64) -> Result<bool, SinkError> {
        let ended = loop {
            match self.receiver.try_recv() {
                Ok(batch) => {
                    self.backlog.fetch_sub(1, Relaxed);
                    if self.records.is_empty() {
                        self.oldest = now;
                    }
                    batch.into_iter().for_each(|entry| self.add(entry));
                    if self.records.len() >= WRITE_AT.0 || self.gaps >= WRITE_AT.1 {
                        self.write()?;
                    }
                }
                Err(TryRecvError::Empty) => break false,
                Err(TryRecvError::Disconnected) => break true,
            }
        };
        if now.saturating_sub(self.oldest) >= WRITE_AFTER {
            self.write()?;
        }
        Ok(ended)
    }

    fn write(&mut self) -> Result<(), SinkError> {
        self.sink.append(&self.records)?;
        self.records.clear();
        self.gaps = 0;
        Ok(())
    }

    fn add(&mut self, entry: Entry) {
        let record = entry.into_record();
        self.gaps += record.gaps_ns.len();
        self.records.push(record);
    }
}

fn sample(samples: &mut Vec<Sample>, progress: &Progress, clock: Clock) {
    let at_ns = clock.now();
    let mut add = |name: &str, value: f64| {
        samples.push(Sample { at_ns, source: "generator".to_owned(), name: name.to_owned(), value });
    };
    add("in_flight", progress.in_flight.get() as f64);
    add("waiting", progress.waiting.get() as f64);
    add("requests_ended_total", progress.ended.get() as f64);
    add("requests_failed_total", progress.failed.get() as f64);
    add("token_events_total", progress.token_events.get() as f64);
    add("cpu_seconds_total", clock.passed().cpu as f64 / 1e9);
    if let Some(bytes) = resident_bytes() {
        add("resident_bytes", bytes as f64);
    }
}

/// Memory of this process, where the platform says it.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
