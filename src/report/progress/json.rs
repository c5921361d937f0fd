//! The events of a sweep as lines of JSON, for programs that follow it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::state::LiveSweep;
use crate::sweep::event::RunView;

/// One line of `run --progress json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProgressLine<'a> {
    /// Time, in UTC: `2026-11-24T14:05:12.123Z`.
    time: String,
    /// The kind of event.
    event: Kind,
    /// The run of the event; null if it concerns none.
    run: Option<RunName<'a>>,
    /// The endpoint of the event; null if the event concerns no endpoint, or a run.
    endpoint: Option<&'a str>,
    /// The event in words, as `--progress plain` prints it; null for `status`.
    text: Option<&'a str>,
    /// The current state; null except for `status`.
    status: Option<&'a LiveSweep>,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
struct RunName<'a> {
    /// Its number among the runs of the selection, from 1.
    number: usize,
    /// Its id.
    id: String,
    /// Its name for people.
    name: &'a str,
}

/// The kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A note that concerns no run and no endpoint.
    Note,
    /// An endpoint responds; is slow, busy or far away; or cannot be used.
    Endpoint,
    /// A server is being started, is ready, or is restarted.
    Server,
    /// The sweep waits for an endpoint.
    Waiting,
    /// A run has started.
    Started,
    /// A run has its result.
    Committed,
    /// The state of a search or a ladder, and the run that it requests next.
    Chosen,
    /// A cell ended before all of its repeats were executed; the remaining repeats are skipped.
    Pruned,
    /// A run failed.
    Failed,
    /// The environment spoiled an attempt; the run is retried.
    Again,
    /// The environment spoiled every attempt that `retries` allows.
    GivenUp,
    /// A run is skipped for now.
    Skipped,
    /// A stop of the sweep was requested.
    Stopping,
    /// The current state.
    Status,
}

/// A message about an event.
pub(super) struct Said<'a> {
    /// The kind of event.
    pub(super) kind: Kind,
    /// The run that it concerns.
    pub(super) run: Option<&'a RunView>,
    /// The endpoint that it concerns.
    pub(super) endpoint: Option<&'a str>,
    /// The text.
    pub(super) text: String,
}

impl Said<'_> {
    /// Formats the message as a line.
    pub(super) fn json(&self) -> String {
        let run = self.run.map(|run| RunName { number: run.number, id: run.id.to_string(), name: &run.name });
        line(&ProgressLine {
            time: now(),
            event: self.kind,
            run,
            endpoint: self.endpoint,
            text: Some(&self.text),
            status: None,
        })
    }
}

/// Formats the current state as a line.
pub(super) fn status(now: &LiveSweep) -> String {
    let (event, time) = (Kind::Status, self::now());
    line(&ProgressLine { time, event, run: None, endpoint: None, text: None, status: Some(now) })
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

fn line(line: &ProgressLine) -> String {
    // The line contains nothing that cannot be serialized as JSON.
    serde_json::to_string(line).unwrap_or_default() + "\n"
}
