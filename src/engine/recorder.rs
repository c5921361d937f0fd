//! From the hot path to the disk: records go in batches through a bounded channel to a thread that writes them, and
//! that thread looks at the run's counters once a second.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::rows::{Record, Sample};

use super::clock::Clock;
use super::progress::Progress;

/// Records in one hand-over: one at a time costs a quarter more (CRATES).
const BATCH: usize = 16;
/// Batches that may wait for the writer. A full channel blocks the engine, which its lateness then shows; nothing is lost.
const BACKLOG: usize = 1024;
/// Time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

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
    batch: Vec<Record>,
    sender: Option<SyncSender<Vec<Record>>>,
    writer: Option<JoinHandle<Result<Vec<Sample>, SinkError>>>,
}

impl Recorder {
    /// Starts the writer thread.
    pub fn start(sink: Box<dyn Sink>, progress: Arc<Progress>, clock: Clock) -> std::io::Result<Recorder> {
        let (sender, receiver) = sync_channel(BACKLOG);
        let writer = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || write(sink, &receiver, &progress, clock))?;
        Ok(Recorder { batch: Vec::with_capacity(BATCH), sender: Some(sender), writer: Some(writer) })
    }

    /// Takes one record. False once the writer has given up: `finish` says why.
    pub fn push(&mut self, record: Record) -> bool {
        self.batch.push(record);
        self.batch.len() < BATCH || self.flush()
    }

    fn flush(&mut self) -> bool {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.sender.as_ref().is_some_and(|sender| sender.send(batch).is_ok())
    }

    /// Hands over what is left and waits until it is written. Gives the samples of the run.
    pub fn finish(mut self) -> Result<Vec<Sample>, SinkError> {
        self.flush();
        self.sender = None;
        let writer = self.writer.take().expect("finish is called once");
        writer.join().unwrap_or_else(|_| Err("the writer thread panicked".into()))
    }
}

fn write(
    mut sink: Box<dyn Sink>,
    receiver: &Receiver<Vec<Record>>,
    progress: &Progress,
    clock: Clock,
) -> Result<Vec<Sample>, SinkError> {
    let mut samples = Vec::new();
    let mut next = 0;
    loop {
        let now = clock.now();
        if now >= next {
            sample(&mut samples, progress, clock);
            next = (now / SAMPLE_EVERY.as_nanos() as u64 + 1) * SAMPLE_EVERY.as_nanos() as u64;
        }
        match receiver.recv_timeout(Duration::from_nanos(next - now.min(next))) {
            Ok(batch) => sink.append(&batch)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                sample(&mut samples, progress, clock);
                sink.finish()?;
                return Ok(samples);
            }
        }
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
