//! Writes the events of a sweep as lines of JSON to a file: `run --events`. docs/LIVE.md describes the lines.
//!
//! A separate thread writes the lines and polls the phases of runs, so neither the engine nor the sweep
//! waits for the disk.

mod file;
mod line;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::phases::Phases;
use crate::sweep::event::Event;
use crate::units::text::counted;
use file::LineFile;
use line::EventKind;
use line::Outcome;
pub(crate) use line::{EventLine, Headline};

/// Interval between polls of the runs' phases.
const LOOK: Duration = Duration::from_millis(50);

/// How long a command waits at its end for the remaining lines to be written. The wait is limited because the
/// file may be a pipe that no process reads from.
const PATIENCE: Duration = Duration::from_secs(2);

/// The log of a command's events. Dropping it waits until all events are in the file, for at most
/// [`PATIENCE`].
pub(crate) struct EventLog {
    plan: String,
    /// Sends messages to the writer; `None` once the log is closed.
    sender: Option<Sender<Told>>,
    over: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// A message to the writer.
struct Told {
    /// The event itself, which updates the phases of runs.
    event: Event,
    /// The lines to write for the event.
    lines: Vec<EventLine>,
}

impl EventLog {
    /// Opens the file and starts the writer.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or created.
    pub(crate) fn start(plan: &str, path: &Path, complain: fn(&str)) -> std::io::Result<EventLog> {
        let (file, plan) = (LineFile::open(path)?, plan.to_owned());
        let (sender, told) = channel();
        let (ends, over) = channel();
        let writer = Writer { plan: plan.clone(), path: path.to_owned(), file: Some(file), complain };
        let write = move || {
            writer.write(&told);
            drop(ends);
        };
        let thread = Some(std::thread::Builder::new().name("events".to_owned()).spawn(write)?);
        Ok(EventLog { plan, sender: Some(sender), over, thread })
    }

    /// Logs an event; `headline` contains the main numbers of the run that the event commits.
    pub(crate) fn take(&self, event: &Event, headline: Option<Headline>) {
        if let Some(sender) = &self.sender {
            // If the writer has ended, it has already reported why.
            let _ = sender.send(Told { event: event.clone(), lines: lines(&self.plan, event, headline) });
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.sender = None;
        let is_over = !matches!(self.over.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout));
        // A writer that is blocked by a pipe is not joined; it ends with the process.
        if let Some(thread) = self.thread.take().filter(|_| is_over) {
            let _ = thread.join();
        }
    }
}

/// Writes the lines of events to the file.
struct Writer {
    plan: String,
    path: PathBuf,
    /// `None` after a failed write.
    file: Option<LineFile>,
    complain: fn(&str),
}

impl Writer {
    fn write(mut self, told: &Receiver<Told>) {
        let mut phases = Phases::default();
        loop {
            let next = told.recv_timeout(LOOK);
            // Phases that began before this event are written before it.
            for (run, phase) in phases.began() {
                self.append(&EventLine::new(&self.plan, EventKind::Phase).run(&run).phase(phase));
            }
            match next {
                Ok(Told { event, lines }) => {
                    phases.take(&event);
                    lines.iter().for_each(|line| self.append(line));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Appends a line. If this fails, no further events are written, but the sweep continues, because events
    /// are not results.
    fn append(&mut self, line: &EventLine) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.append(&line.bytes()) {
            (self.complain)(&format!("--events {}: no more events are written: {error}", self.path.display()));
            self.file = None;
        }
    }
}

/// Returns the lines for an event.
fn lines(plan: &str, event: &Event, headline: Option<Headline>) -> Vec<EventLine> {
    let line = |kind| EventLine::new(plan, kind);
    let one = match event {
        Event::Begin { todo, settled, .. } => line(EventKind::StageStarted).runs(todo.len(), *settled),
        Event::Chosen { pool, standing, next } => {
            let decided = line(EventKind::Decided).text(&format!("{pool}: {standing}"));
            next.iter().fold(decided, EventLine::run)
        }
        Event::Pruned { cell, why, runs } => {
            let text = format!("{cell}: {why}; {} skipped", counted(runs.len(), "run"));
            let pruned = |run| line(EventKind::RunEnded).run(run).result(Outcome::Pruned, None);
            return std::iter::once(line(EventKind::Decided).text(&text)).chain(runs.iter().map(pruned)).collect();
        }
        Event::Endpoint { endpoint, result } => {
            let (Ok(text) | Err(text)) = result;
            line(EventKind::Endpoint).endpoint(endpoint).text(text)
        }
        Event::Launching { endpoint, command } => {
            line(EventKind::Server).endpoint(endpoint).text(&format!("starting {command}"))
        }
        Event::Launched { endpoint, after, log } => {
            let text = format!("ready after {:.3} s (log: {log})", after.as_secs_f64());
            line(EventKind::Server).endpoint(endpoint).text(&text)
        }
        Event::Relaunching { endpoint, reason, again, of } => {
            let text = format!("to be restarted ({again} of {of}): {reason}");
            line(EventKind::Server).endpoint(endpoint).text(&text)
        }
        Event::Far { endpoint, why } => line(EventKind::Endpoint).endpoint(endpoint).text(why),
        Event::ListRefused { endpoint, note } => line(EventKind::Endpoint).endpoint(endpoint).text(note),
        Event::Slow { endpoint, url } => {
            line(EventKind::Waiting).endpoint(endpoint).text(&format!("waiting for {url} to respond"))
        }
        Event::Busy { endpoint, what } => line(EventKind::Waiting).endpoint(endpoint).text(what),
        Event::Waiting { endpoint, waiting } => line(EventKind::Waiting).endpoint(endpoint).text(&waiting.reason),
        Event::Started { run, .. } => line(EventKind::RunStarted).run(run),
        Event::Committed { run } => line(EventKind::RunEnded).run(run).result(Outcome::Committed, headline),
        Event::Failed { run, reason } => line(EventKind::RunEnded).run(run).result(Outcome::Failed, None).text(reason),
        Event::Again { run, reason, again, of } => {
            let text = format!("to be retried ({again} of {of}): {reason}");
            line(EventKind::RunSpoiled).run(run).text(&text)
        }
        Event::GivenUp { run, cause, reason, times } => {
            let text = format!("{}: {reason}", cause.given_up(*times));
            line(EventKind::RunEnded).run(run).result(Outcome::GivenUp, None).text(&text)
        }
        Event::Skipped { run, reason } => {
            line(EventKind::RunEnded).run(run).result(Outcome::Skipped, None).text(reason)
        }
        Event::Stopping => line(EventKind::Stopping),
        Event::End => line(EventKind::StageEnded),
    };
    vec![one]
}
