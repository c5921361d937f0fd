//! A command's sweep as OpenTelemetry spans, by the usual environment variables: docs/LIVE.md describes them. The sweep is the parent, under it each
//! attempt at a run, under that its phases.
//!
//! A thread of its own makes the spans and sends them: neither the engine nor the sweep waits for a collector.

mod export;
mod otlp;
mod settings;
mod span;
mod told;
mod tree;

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::events::Headline;
use crate::sweep::event::Event;
use export::{Exporter, PATIENCE};
use settings::Settings;
use told::Told;
use tree::Tree;

/// Beyond its patience, what the thread takes to end.
const GRACE: Duration = Duration::from_millis(200);

/// The traces of a command. What was told has been sent when it goes, or given up.
pub(crate) struct Traces {
    /// None when it is over.
    sender: Option<UnboundedSender<Told>>,
    over: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Traces {
    /// Begins to listen where the environment names a collector; else there is none. What the environment says wrongly is complained of, and
    /// nothing is sent.
    pub(crate) fn start(plan: &str, complain: fn(&str)) -> Option<Traces> {
        let settings = match Settings::of(|name| std::env::var(name).ok()) {
            Ok(settings) => settings?,
            Err(why) => {
                complain(&format!("no traces are sent: {why}"));
                return None;
            }
        };
        let started = Traces::with(plan, settings, complain);
        started.map_err(|error| complain(&format!("no traces are sent: {error}"))).ok()
    }

    fn with(plan: &str, settings: Settings, complain: fn(&str)) -> std::io::Result<Traces> {
        let tree = Tree::new(plan, settings.parent, span::now())?;
        let (sender, told) = unbounded_channel();
        let (ends, over) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let exporter = Exporter::new(settings, complain).map_err(std::io::Error::other)?;
        let work = move || {
            runtime.block_on(exporter.work(tree, told));
            // A name that is still looked up holds up nothing.
            runtime.shutdown_background();
            drop(ends);
        };
        let thread = Some(std::thread::Builder::new().name("traces".to_owned()).spawn(work)?);
        Ok(Traces { sender: Some(sender), over, thread })
    }

    /// Takes an event; `headline` is of the run that it commits.
    pub(crate) fn take(&self, event: &Event, headline: Option<Headline>) {
        if let Some(sender) = &self.sender {
            // Where the thread is gone nothing more is sent.
            let _ = sender.send(Told { event: event.clone(), at_ns: span::now(), headline });
        }
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        self.sender = None;
        let is_over = !matches!(self.over.recv_timeout(PATIENCE + GRACE), Err(RecvTimeoutError::Timeout));
        if let Some(thread) = self.thread.take().filter(|_| is_over) {
            let _ = thread.join();
        }
    }
}
