//! Sends a command's sweep as OpenTelemetry spans, configured by the usual environment variables (see
//! docs/LIVE.md). The span of the sweep is the parent of a span for each attempt at a run, which is the
//! parent of a span for each phase of the attempt.
//!
//! A separate thread creates the spans and sends them, so neither the engine nor the sweep waits for
//! a collector.

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

/// Additional time for the thread to end after [`PATIENCE`].
const GRACE: Duration = Duration::from_millis(200);

/// The traces of a command. When this is dropped, all spans are sent; spans that the collector does not
/// accept in time are discarded.
pub(crate) struct Traces {
    /// Sends messages to the thread; `None` once the traces are closed.
    sender: Option<UnboundedSender<Told>>,
    over: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Traces {
    /// Starts sending traces if the environment names a collector; otherwise returns `None`. Invalid settings
    /// are reported with `complain`, and nothing is sent.
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
            // The runtime is not joined, because a pending name lookup would block.
            runtime.shutdown_background();
            drop(ends);
        };
        let thread = Some(std::thread::Builder::new().name("traces".to_owned()).spawn(work)?);
        Ok(Traces { sender: Some(sender), over, thread })
    }

    /// Records an event; `headline` contains the main numbers of the run that the event commits.
    pub(crate) fn take(&self, event: &Event, headline: Option<Headline>) {
        if let Some(sender) = &self.sender {
            // If the thread has ended, nothing more is sent.
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
