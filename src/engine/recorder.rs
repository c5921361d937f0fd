//! From the hot path to the disk: records go in batches through a bounded channel to a thread that writes them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::rows::Record;

use super::observe::Observer;

/// Records in one hand-over: one at a time costs a quarter more (CRATES).
const BATCH: usize = 16;
/// Batches that may wait for the writer. A full channel blocks the engine, which its lateness then shows; nothing is lost.
pub const BACKLOG: usize = 1024;

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
    writer: Option<JoinHandle<Result<(), SinkError>>>,
    observer: Observer,
}

impl Recorder {
    /// Starts the writer thread.
    pub fn start(sink: Box<dyn Sink>, observer: Observer) -> std::io::Result<Recorder> {
        let (sender, receiver) = sync_channel(BACKLOG);
        let told = observer.clone();
        let writer =
            std::thread::Builder::new().name("writer".to_owned()).spawn(move || write(sink, &receiver, &told))?;
        Ok(Recorder { batch: Vec::with_capacity(BATCH), sender: Some(sender), writer: Some(writer), observer })
    }

    /// Takes one record. False once the writer has given up: `finish` says why.
    pub fn push(&mut self, record: Record) -> bool {
        self.observer.ended(&record.row);
        self.batch.push(record);
        self.batch.len() < BATCH || self.flush()
    }

    fn flush(&mut self) -> bool {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.observer.backlog().put();
        self.sender.as_ref().is_some_and(|sender| sender.send(batch).is_ok())
    }

    /// Hands over what is left and waits until it is written.
    pub fn finish(mut self) -> Result<(), SinkError> {
        self.flush();
        self.sender = None;
        let writer = self.writer.take().expect("finish is called once");
        writer.join().unwrap_or_else(|_| Err("the writer thread panicked".into()))
    }
}

fn write(mut sink: Box<dyn Sink>, receiver: &Receiver<Vec<Record>>, observer: &Observer) -> Result<(), SinkError> {
    observer.enlist("writer");
    for batch in receiver {
        observer.backlog().took();
        sink.append(&batch)?;
    }
    sink.finish()
}
