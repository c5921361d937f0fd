//! What happens in a sweep as lines of JSON, for programs that follow it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::state::LiveSweep;
use crate::sweep::event::RunView;

/// One line of `run --progress json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProgressLine<'a> {
    /// When, in UTC: `2026-11-24T14:05:12.123Z`.
    time: String,
    /// What happened.
    event: Kind,
    /// The run that it is about; null where it is about none.
    run: Option<RunName<'a>>,
    /// The endpoint that it is about; null where it is about none, or about a run.
    endpoint: Option<&'a str>,
    /// The same in words, as `--progress plain` prints it; null of `status`.
    text: Option<&'a str>,
    /// How things stand; null of all but `status`.
    status: Option<&'a LiveSweep>,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
struct RunName<'a> {
    /// Its number among the runs of the selection, from 1.
    number: usize,
    /// Its id.
    id: String,
    /// What people call it.
    name: &'a str,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Something to know that is about no run and no endpoint.
    Note,
    /// An endpoint answers, is slow, busy or far, or cannot be used.
    Endpoint,
    /// A server is being started, is ready, or is started again.
    Server,
    /// An endpoint is waited for.
    Waiting,
    /// A run has begun.
    Started,
    /// A run has its result.
    Committed,
    /// How a search or a ladder stands, and which run it asks for next.
    Chosen,
    /// A cell has ended before all of its repeats were made: the others are left out.
    Pruned,
    /// A run failed.
    Failed,
    /// The environment spoiled an attempt; the run is tried again.
    Again,
    /// The environment spoiled every attempt that `retries` allows.
    GivenUp,
    /// A run is left out for now.
    Skipped,
    /// The sweep was told to stop.
    Stopping,
    /// How things stand.
    Status,
}

/// What is said of something that happened.
pub(super) struct Said<'a> {
    /// What happened.
    pub(super) kind: Kind,
    /// The run that it is about.
    pub(super) run: Option<&'a RunView>,
    /// The endpoint that it is about.
    pub(super) endpoint: Option<&'a str>,
    /// The words.
    pub(super) text: String,
}

impl Said<'_> {
    /// As a line.
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

/// How things stand, as a line.
pub(super) fn status(now: &LiveSweep) -> String {
    let (event, time) = (Kind::Status, self::now());
    line(&ProgressLine { time, event, run: None, endpoint: None, text: None, status: Some(now) })
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

fn line(line: &ProgressLine) -> String {
    // Nothing in it can fail to be written as JSON.
    serde_json::to_string(line).unwrap_or_default() + "\n"
}
