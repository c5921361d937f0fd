//! Where else a sweep is told while it goes on, besides the screen: metrics for Prometheus, a file of events, and traces.

use std::path::Path;

use super::args::RunArgs;
use super::metrics::MetricsServer;
use crate::cli::failure::Failure;
use crate::cli::stderr;
use crate::report::format::plain;
use crate::report::progress::{EventLog, Headline, Traces};
use crate::sweep::event::Event;

/// What the command line asks for.
pub(super) struct Outlets {
    metrics: Option<MetricsServer>,
    events: Option<EventLog>,
    traces: Option<Traces>,
}

impl Outlets {
    /// Opens what was asked for, and says where the metrics are.
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

    /// A stage begins that takes `pace` seconds for each second of its runs.
    pub(super) fn begin(&self, pace: f64) {
        self.metrics.iter().for_each(|metrics| metrics.begin(pace));
    }

    /// Takes an event; `headline` is of the run that it commits.
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
        let why = "--events -: stdout has the table of results; name a file, or a pipe like /dev/fd/3, or let --progress json tell on stderr";
        return Err(Failure::Usage(why.to_owned()));
    }
    EventLog::start(plan, path, stderr::complain).map_err(|error| {
        let path = path.display();
        Failure::Usage(format!(
            "--events {path} cannot be written ({error}): name a file in a folder that is there and may be written"
        ))
    })
}
