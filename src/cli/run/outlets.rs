//! Outputs of a running sweep other than the screen: metrics for Prometheus, a file of events, and traces.

use std::path::Path;

use super::args::RunArgs;
use super::metrics::MetricsServer;
use crate::cli::failure::Failure;
use crate::cli::stderr;
use crate::report::format::plain;
use crate::report::progress::{EventLog, Headline, Outlook, Traces};
use crate::sweep::event::Event;

/// The outputs requested on the command line.
pub(super) struct Outlets {
    metrics: Option<MetricsServer>,
    events: Option<EventLog>,
    traces: Option<Traces>,
}

impl Outlets {
    /// Opens the requested outputs, and prints the address of the metrics.
    pub(super) fn open(args: &RunArgs, plan: &str) -> Result<Outlets, Failure> {
        let plan = &plain(plan);
        let events = args.events.as_deref().map(|path| log(path, plan)).transpose()?;
        let metrics = args.metrics_addr.map(|address| MetricsServer::start(address, plan)).transpose()?;
        if let Some(metrics) = &metrics {
            args.screen().with_times().line(&format!("metrics: {}", metrics.url()));
        }
        let traces = Traces::start(plan, stderr::complain);
        Ok(Outlets { metrics, events, traces })
    }

    /// Begins a stage.
    pub(super) fn begin(&self, outlook: Outlook) {
        self.metrics.iter().for_each(|metrics| metrics.begin(outlook.clone()));
    }

    /// Records an event; `headline` contains the figures of the run that was committed.
    pub(super) fn take(&self, event: &Event, headline: impl FnOnce() -> Option<Headline>) {
        self.metrics.iter().for_each(|metrics| metrics.take(event));
        if self.events.is_none() && self.traces.is_none() {
            return;
        }
        let headline = headline();
        self.events.iter().for_each(|events| events.take(event, headline.clone()));
        self.traces.iter().for_each(|traces| traces.take(event, headline.clone()));
    }
}

fn log(path: &Path, plan: &str) -> Result<EventLog, Failure> {
    if path == Path::new("-") {
        let why = "--events -: stdout has the table of results; name a file, or a pipe like /dev/fd/3, or use \
                   --progress json on stderr";
        return Err(Failure::Usage(why.to_owned()));
    }
    EventLog::start(plan, path, stderr::complain).map_err(|error| {
        let path = path.display();
        Failure::Usage(format!(
            "--events {path} cannot be written ({error}): name a file in an existing, writable folder"
        ))
    })
}
