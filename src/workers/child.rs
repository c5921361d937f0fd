//! The coordinator's view of the worker processes.

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;

use crate::engine::{EngineError, monotonic};
use crate::rows::{Record, RecordDecoder, SpoilCause, Spoiled};

use super::frame::{self, Kind};
use super::message::{Build, FromWorker, Order, ToWorker};
use super::start::StartCommand;

/// Maximum number of messages that wait for the coordinator. When it is reached, the workers' pipes fill
/// up, and the workers' own checks then show that their writers fell behind.
const BACKLOG: usize = 1024;
/// How often the coordinator checks whether the run must stop while it waits for messages.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a worker may take to exit before it is killed.
const END_WITHIN: Duration = Duration::from_secs(2);
/// Number of bytes kept from the end of a worker's standard error.
const LAST_WORDS: usize = 2_000;

/// An event of a worker.
pub(super) enum Event {
    /// The worker has received its order; further messages are written to this input.
    Took(ChildStdin),
    /// The worker sent this message; the number is the time of the coordinator's monotonic clock when the
    /// message arrived, in nanoseconds.
    Told(FromWorker, u64),
    /// The worker sent records.
    Records(Vec<Record>),
    /// The worker is gone or sent unreadable data; the text is the reason, if it is known.
    Gone(Option<String>),
}

/// One worker process.
pub(super) struct Member {
    /// The name of the worker, for example `worker 1`.
    pub(super) name: String,
    /// The command that started the worker, as shown in messages.
    shown: String,
    /// The name of the worker's machine; empty until it is known.
    pub(super) host: String,
    child: Child,
    input: Option<ChildStdin>,
    last_words: Arc<Mutex<Vec<u8>>>,
    /// When the worker's last message arrived.
    pub(super) heard: Instant,
}

impl Member {
    /// Returns the end of the worker's standard error. Waits briefly if it is still empty, because the
    /// output may not have arrived yet.
    fn last_words(&self) -> String {
        let deadline = Instant::now() + Duration::from_millis(100);
        loop {
            let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if !words.is_empty() || Instant::now() > deadline {
                return String::from_utf8_lossy(&words).trim().to_owned();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// All workers of a run. Dropping this value ends them.
pub(super) struct Crew {
    pub(super) members: Vec<Member>,
    events: Receiver<(usize, Event)>,
    stop: watch::Receiver<bool>,
    /// The function that removes secrets from a worker's messages.
    redact: Box<dyn Fn(&str) -> String + Send>,
}

impl Crew {
    /// Starts a worker with each of these commands, and sends it `order` with its share.
    pub(super) fn start(
        commands: &[StartCommand],
        (order, material): (&Order, Vec<u8>),
        stop: watch::Receiver<bool>,
        redact: Box<dyn Fn(&str) -> String + Send>,
    ) -> Result<Crew, EngineError> {
        let (sender, events) = sync_channel(BACKLOG);
        let mut crew = Crew { members: Vec::new(), events, stop, redact };
        let material = Arc::new(material);
        for (index, command) in commands.iter().enumerate() {
            let name = format!("worker {}", index + 1);
            let wrong = |error: std::io::Error| EngineError::Workers(format!("{name} could not be started: {error}"));
            let mut child = command.spawn().map_err(wrong)?;
            let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let last_words = Arc::new(Mutex::new(Vec::new()));
            crew.members.push(Member {
                name,
                shown: command.shown(),
                host: String::new(),
                child,
                input: None,
                last_words: Arc::clone(&last_words),
                heard: Instant::now(),
            });
            let (Some(input), Some(output), Some(errors)) = (input, output, errors) else { continue };
            let order = Order { share: (index as u32, commands.len() as u32), ..order.clone() };
            let hand = hand_over(input, order, Arc::clone(&material), (index, sender.clone()));
            let threads = [
                std::thread::Builder::new().name("worker-order".to_owned()).spawn(hand),
                std::thread::Builder::new()
                    .name("worker-rows".to_owned())
                    .spawn(listen(output, (index, sender.clone()))),
                std::thread::Builder::new().name("worker-errors".to_owned()).spawn(keep(errors, last_words)),
            ];
            threads.into_iter().try_for_each(|thread| thread.map(drop)).map_err(EngineError::Setup)?;
        }
        Ok(crew)
    }

    /// Returns the next event and the index of its worker; `None` if there is none before `deadline`. Fails
    /// if the run must stop.
    pub(super) fn next(&self, deadline: Instant) -> Result<Option<(usize, Event)>, EngineError> {
        loop {
            if *self.stop.borrow() || self.stop.has_changed().is_err() {
                return Err(EngineError::Stopped);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left.min(LOOK_EVERY)) {
                Ok(event) => return Ok(Some(event)),
                Err(RecvTimeoutError::Timeout) if left > LOOK_EVERY => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Sends a message to worker number `index`; fails if the worker is gone.
    pub(super) fn tell(&mut self, index: usize, message: &ToWorker) -> Result<(), EngineError> {
        let content = serde_json::to_vec(message).map_err(|error| EngineError::Workers(error.to_string()))?;
        let sent = match &mut self.members[index].input {
            Some(input) => frame::write(input, Kind::Message, &content),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|_| self.lost(index, None))
    }

    /// Sends a message to all workers.
    pub(super) fn tell_all(&mut self, message: &ToWorker) -> Result<(), EngineError> {
        (0..self.members.len()).try_for_each(|index| self.tell(index, message))
    }

    /// Records that a worker has received its order; `input` is where further messages are written.
    pub(super) fn took(&mut self, index: usize, input: ChildStdin) {
        self.members[index].input = Some(input);
    }

    /// Returns the error for the loss of worker number `index`, with its exit status and the end of its
    /// standard error.
    pub(super) fn lost(&mut self, index: usize, reason: Option<String>) -> EngineError {
        let called = self.called(index);
        let member = &mut self.members[index];
        let how = match (reason, waited(&mut member.child, Duration::from_millis(200))) {
            (Some(reason), _) => reason,
            (None, Some(status)) => format!("it ended ({status})"),
            (None, None) => "its pipe is closed".to_owned(),
        };
        let words = member.last_words();
        let words = if words.is_empty() { String::new() } else { format!("; it wrote: {words}") };
        let detail = (self.redact)(&format!("{called} was lost: {how}{words}"));
        EngineError::Spoiled(Spoiled { cause: SpoilCause::WorkerLost, detail, retry_after: None })
    }

    /// Returns an error that names worker number `index`.
    pub(super) fn wrong(&self, index: usize, what: &str) -> EngineError {
        EngineError::Workers((self.redact)(&format!("{} {what}", self.called(index))))
    }

    fn called(&self, index: usize) -> String {
        let Member { name, shown, host, .. } = &self.members[index];
        if host.is_empty() { format!("{name} ({shown})") } else { format!("{name} on {host} ({shown})") }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let ended = serde_json::to_vec(&ToWorker::Stop).unwrap_or_default();
        for member in &mut self.members {
            if let Some(mut input) = member.input.take() {
                // Errors do not matter: the input is closed afterwards, and a worker exits when its input
                // ends.
                let _ = frame::write(&mut input, Kind::Message, &ended);
            }
        }
        // The threads that send orders end with their worker. The threads that read messages end when the
        // receiver is dropped.
        let deadline = Instant::now() + END_WITHIN;
        for member in &mut self.members {
            while self.events.try_recv().is_ok() {}
            if waited(&mut member.child, deadline.saturating_duration_since(Instant::now())).is_none() {
                if let Some(group) = Pid::from_raw(member.child.id() as i32) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = member.child.wait();
            }
        }
    }
}

/// Waits for a process to exit, for at most `within`. Returns `None` if the process is still running.
fn waited(child: &mut Child, within: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + within;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

type Sender = (usize, SyncSender<(usize, Event)>);

/// Returns a function that sends a worker its order. It runs on its own thread, because an order may exceed
/// the capacity of a pipe.
fn hand_over(mut input: ChildStdin, order: Order, material: Arc<Vec<u8>>, (index, sender): Sender) -> impl FnOnce() {
    move || {
        let hello = serde_json::to_vec(&ToWorker::Hello(Build::own()));
        let order = serde_json::to_vec(&ToWorker::Order(Box::new(order)));
        let write = |input: &mut ChildStdin| -> std::io::Result<()> {
            frame::write(input, Kind::Message, &hello?)?;
            frame::write(input, Kind::Message, &order?)?;
            frame::write(input, Kind::Material, &material)?;
            input.flush()
        };
        // A worker that does not read its order is gone or has another version. Its output shows which of
        // these is the case.
        if write(&mut input).is_ok() {
            let _ = sender.send((index, Event::Took(input)));
        }
    }
}

/// Returns a function that forwards a worker's messages as events, until the worker's output ends.
fn listen(output: ChildStdout, (index, sender): Sender) -> impl FnOnce() {
    move || {
        let mut output = BufReader::new(output);
        let mut decoder = RecordDecoder::default();
        loop {
            let frame = frame::read(&mut output);
            let arrived = monotonic();
            let event = match frame {
                Ok(Some((Kind::Message, content))) => match serde_json::from_slice(&content) {
                    Ok(message) => Event::Told(message, arrived),
                    Err(error) => Event::Gone(Some(format!("its message cannot be read: {error}"))),
                },
                Ok(Some((Kind::Records, content))) => match decoder.decode(content) {
                    Ok(records) => Event::Records(records),
                    Err(error) => Event::Gone(Some(format!("its rows cannot be read: {error}"))),
                },
                Ok(Some((Kind::Material, _)) | None) => Event::Gone(None),
                Err(error) => Event::Gone(Some(error.to_string())),
            };
            let is_last = matches!(event, Event::Gone(_));
            if sender.send((index, event)).is_err() || is_last {
                return;
            }
        }
    }
}

/// Returns a function that reads a worker's standard error and keeps the last part of it.
fn keep(mut errors: ChildStderr, last_words: Arc<Mutex<Vec<u8>>>) -> impl FnOnce() {
    move || {
        let mut bytes = [0; 512];
        while let Ok(read @ 1..) = errors.read(&mut bytes) {
            let mut kept = last_words.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&bytes[..read]);
            let over = kept.len().saturating_sub(LAST_WORDS);
            kept.drain(..over);
        }
    }
}
