//! What programs read of attempts at a run that were never committed: the same fields in `preview`, `why` and `list`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::rows::SpoilCause;
use crate::store::{How, LastTry, Moment, Tries};

/// The attempts at a run since its last commit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Tried {
    /// How many of them the environment spoiled, from the last one on that began afresh.
    spoiled: u32,
    /// How often the run had been tried again when it was given up; null where it is not. A plan that now allows more retries
    /// goes on with it.
    given_up: Option<u32>,
    /// The number of the last one.
    attempt: u32,
    /// How the last one ended.
    how: Ending,
    /// What spoiled the last one; null where nothing did.
    cause: Option<SpoilCause>,
    /// Why the last one failed, in words; null where it did not.
    detail: Option<String>,
    /// When the last one began, in UTC; null where its attempt.json cannot be read.
    started: Option<Moment>,
    /// When the last one ended, in UTC; where its process was killed, when it last wrote; null while it is under way.
    ended: Option<Moment>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Ending {
    /// It has not.
    UnderWay,
    /// The user interrupted it, or its process was killed.
    Interrupted,
    /// It failed for a reason that is not the environment's, and does not count.
    Failed,
    /// The environment spoiled it.
    Spoiled,
}

impl Tried {
    /// What `tries` say; none where there is no attempt.
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
