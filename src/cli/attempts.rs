//! Attempts at a run that were never committed, in JSON output. `preview`, `why` and `list` have the same
//! fields.

use schemars::JsonSchema;
use serde::Serialize;

use crate::rows::SpoilCause;
use crate::store::{How, LastTry, Moment, Tries};

/// The attempts at a run since its last commit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Tried {
    /// How many attempts the environment spoiled, since the retry count was last reset.
    spoiled: u32,
    /// How often the run had been retried when it was given up; null if it was not given up. If the plan
    /// now allows more retries, the run is retried.
    given_up: Option<u32>,
    /// The number of the last attempt.
    attempt: u32,
    /// How the last attempt ended.
    how: Ending,
    /// The cause that spoiled the last attempt; null if none did.
    cause: Option<SpoilCause>,
    /// Why the last attempt failed, as text; null if it did not fail.
    detail: Option<String>,
    /// When the last attempt began, in UTC; null if its attempt.json cannot be read.
    started: Option<Moment>,
    /// When the last attempt ended, in UTC; if its process was killed, the time of its last write; null
    /// while it is running.
    ended: Option<Moment>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Ending {
    /// The attempt has not ended yet.
    UnderWay,
    /// The user interrupted the attempt, or its process was killed.
    Interrupted,
    /// The attempt failed for a reason other than the environment, and does not count as a retry.
    Failed,
    /// The environment spoiled the attempt.
    Spoiled,
}

impl Tried {
    /// Summarizes `tries`; `None` if there is no attempt.
    pub(super) fn of(tries: &Tries) -> Option<Tried> {
        let LastTry { number, started, ended, how, given_up: _ } = tries.last.clone()?;
        let (how, cause, detail) = match how {
            How::UnderWay(_) => (Ending::UnderWay, None, None),
            How::Interrupted => (Ending::Interrupted, None, None),
            How::Failed(reason) => (Ending::Failed, None, Some(reason)),
            How::Spoiled(what) => (Ending::Spoiled, Some(what.cause), Some(what.detail)),
        };
        let given_up = tries.given_up.as_ref().map(|given_up| given_up.times);
        Some(Tried { spoiled: tries.spoiled, given_up, attempt: number, how, cause, detail, started, ended })
    }
}
