//! Passes entries from the hot path to the disk. Batches go through a bounded channel to a thread that
//! writes them.
//!
//! The writer polls every 20 ms; the hot path wakes it only when many entries have accumulated.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::rows::{Record, RequestRow};
use crate::workload::{Tokenizer, Trail};

use super::clock::Clock;
use super::observe::Observer;
use super::prefix_tree::PrefixTree;
use super::share::Share;
use super::sink::{Sink, SinkError};
use super::tally::{Entry, Unwritten};
use super::threads;
use super::transcripts::Texts;

/// Number of entries in a batch. Passing on entries one at a time was measured to cost a quarter more.
const BATCH: usize = 16;
/// When the gaps, prompt beginnings and texts in a batch reach this size, in bytes, the batch is passed on
/// before it is full, so that the memory of a full channel is bounded, too.
const BATCH_BYTES: usize = 32 << 10;
/// Number of batches that may wait for the writer, with at most 32 MiB of gaps. A full channel blocks the
/// engine, which shows in its lateness; no entry is lost.
const BACKLOG: usize = 1024;
/// Like `BACKLOG`, for runs whose texts are recorded. A batch then contains about 32 KiB of texts,
/// or the texts of one request, however long they are.
const BACKLOG_OF_TEXTS: usize = 64;
/// The writer is woken when more batches are waiting than the maximum number divided by this constant.
const WAKE_AT: u64 = 4;
/// How often the writer polls for batches.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Number of records, or of gaps in them, at which the waiting records are written to the file.
const WRITE_AT: (usize, usize) = (1024, 256 << 10);
/// Maximum time for which a record waits to be written together with others, in nanoseconds.
const WRITE_AFTER: u64 = 100_000_000;

/// The entries that are passed to the writer together.
struct Batch {
    /// Numbers of started requests with the beginnings of their prompts, in the order in which the requests
    /// started.
    sent: Vec<(u64, Arc<Trail>)>,
    /// Finished requests. Each of them started in this batch or an earlier one.
    ended: Vec<Unwritten>,
}

/// The engine's end of the channel to the writer.
pub(crate) struct Recorder {
    batch: Batch,
    batch_bytes: usize,
    sender: Option<SyncSender<Batch>>,
    writer: Option<JoinHandle<Result<Option<u64>, SinkError>>>,
    keeps_texts: bool,
    can_count: bool,
    /// Number of waiting batches at which the writer is woken.
    wake_at: u64,
    observer: Observer,
}

impl Recorder {
    /// Starts the writer thread for a share of the load; `texts` is the destination of texts, or `None` if
    /// they are not recorded. `tokenizer` counts tokens that the server did not count.
    pub(crate) fn start(
        sink: Box<dyn Sink>,
        texts: Option<Texts>,
        tokenizer: Option<Arc<Tokenizer>>,
        share: Share,
        observer: Observer,
        clock: Clock,
    ) -> std::io::Result<Recorder> {
        let (keeps_texts, can_count) = (texts.is_some(), tokenizer.is_some());
        let backlog = if keeps_texts { BACKLOG_OF_TEXTS } else { BACKLOG };
        observer.backlog().allow(backlog);
        let (sender, receiver) = sync_channel(backlog);
        let prefixes = PrefixTree::new();
        let writer = Writer {
            sink,
            texts,
            tokenizer,
            receiver,
            observer: observer.clone(),
            clock,
            prefixes: if share.is_whole() { prefixes } else { prefixes.beside_others() },
            reusable: HashMap::new(),
            records: Vec::with_capacity(WRITE_AT.0),
            gaps: 0,
            oldest: 0,
        };
        let writer = std::thread::Builder::new().name("writer".to_owned()).spawn(move || writer.run())?;
        Ok(Recorder {
            batch: Batch::new(),
            batch_bytes: 0,
            sender: Some(sender),
            writer: Some(writer),
            keeps_texts,
            can_count,
            wake_at: backlog as u64 / WAKE_AT,
            observer,
        })
    }

    /// Whether the texts of requests and responses must be kept.
    pub(crate) fn keeps_texts(&self) -> bool {
        self.keeps_texts
    }

    /// Whether a tokenizer can count the tokens of responses.
    pub(crate) fn can_count(&self) -> bool {
        self.can_count
    }

    /// Takes the beginning of the prompt of request `request`, which starts now. The writer thread compares
    /// prompts in the order of these calls. Returns false once the writer has failed.
    pub(crate) fn sent(&mut self, request: u64, trail: Arc<Trail>) -> bool {
        self.batch_bytes += trail.size();
        self.batch.sent.push((request, trail));
        self.batch_bytes < BATCH_BYTES || self.flush()
    }

    /// Takes the entry of a request that has ended. Returns false once the writer has failed; `finish` then
    /// returns the reason.
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        self.observer.ended(entry.row());
        let entry = entry.unbox();
        self.batch_bytes += entry.size();
        self.batch.ended.push(entry);
        (self.batch.ended.len() < BATCH && self.batch_bytes < BATCH_BYTES) || self.flush()
    }

    fn flush(&mut self) -> bool {
        self.batch_bytes = 0;
        let batch = std::mem::replace(&mut self.batch, Batch::new());
        if self.observer.backlog().put() > self.wake_at {
            self.wake();
        }
        self.sender.as_ref().is_some_and(|sender| sender.send(batch).is_ok())
    }

    fn wake(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }

    /// Passes on the remaining entries and waits until they are written. Returns the number of requests
    /// with recorded texts; `None` if texts are not recorded.
    pub(crate) fn finish(mut self) -> Result<Option<u64>, SinkError> {
        self.flush();
        self.sender = None;
        self.wake();
        let writer = self.writer.take().expect("finish is called once");
        writer.join().unwrap_or_else(|_| Err("the writer thread panicked".into()))
    }
}

impl Batch {
    fn new() -> Batch {
        Batch { sent: Vec::new(), ended: Vec::with_capacity(BATCH) }
    }
}

/// Returns how many leading tokens of a request's prompt the server has seen, whether in the same
/// conversation (according to the row) or in other requests (`of_others`). The result is never larger than
/// the prompt. `None` if `of_others` is unknown.
fn reusable(row: &RequestRow, of_others: Option<u32>) -> Option<u32> {
    let seen = row.reusable_tokens.unwrap_or(0);
    Some(of_others?.max(seen).min(row.intended_prompt_tokens))
}

/// The state of the writer thread.
struct Writer {
    sink: Box<dyn Sink>,
    texts: Option<Texts>,
    /// Counts tokens that the server did not count.
    tokenizer: Option<Arc<Tokenizer>>,
    receiver: Receiver<Batch>,
    observer: Observer,
    clock: Clock,
    /// The prompts that the server has received, to find common beginnings.
    prefixes: PrefixTree,
    /// For each request in flight: how many leading tokens its prompt shares with earlier requests; `None`
    /// if unknown.
    reusable: HashMap<u64, Option<u32>>,
    /// Records that are not written yet.
    records: Vec<Record>,
    /// Number of gaps in `records`.
    gaps: usize,
    /// When the first of `records` arrived, in nanoseconds since the run's start.
    oldest: u64,
}

impl Writer {
    fn run(mut self) -> Result<Option<u64>, SinkError> {
        let _member = self.observer.enlist("writer");
        threads::step_back();
        while !self.take(self.clock.now())? {
            std::thread::park_timeout(LOOK_EVERY);
        }
        self.write()?;
        self.sink.finish()?;
        self.texts.map(Texts::finish).transpose()
    }

    /// Takes the batches that have arrived, and writes the records if there are enough or they have waited
    /// long enough. Returns true if no more batches can arrive.
    fn take(&mut self, now: u64) -> Result<bool, SinkError> {
        let ended = loop {
            match self.receiver.try_recv() {
                Ok(batch) => {
                    self.observer.backlog().took();
                    if self.records.is_empty() {
                        self.oldest = now;
                    }
                    for (request, trail) in &batch.sent {
                        self.reusable.insert(*request, self.prefixes.send(trail));
                    }
                    batch.ended.into_iter().try_for_each(|entry| self.add(entry))?;
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

    fn add(&mut self, entry: Unwritten) -> Result<(), SinkError> {
        let (mut record, words) = entry.into_record(self.tokenizer.as_deref());
        let row = &mut record.row;
        if let Some(known) = self.reusable.remove(&row.request) {
            row.reusable_tokens = reusable(row, known);
        }
        if let (Some(texts), Some(words)) = (&mut self.texts, words) {
            texts.add(&record.row, *words)?;
        }
        self.gaps += record.gaps_ns.len();
        self.records.push(record);
        Ok(())
    }
}
