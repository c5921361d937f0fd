//! Why an attempt at a run did not measure the server: something in the environment spoiled the attempt.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How the environment spoiled an attempt. The attempt's rows do not describe the server under this load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spoiled {
    /// The cause.
    pub cause: SpoilCause,
    /// Details as text, with the server's message. Contains no secrets and is safe for a terminal.
    pub detail: String,
    /// The pause that the server requested in `Retry-After`; `None` if it requested none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Nanos>,
}

/// Part of the detail if a server ended before it was ready.
pub const BEFORE_READY: &str = "before it was ready";

/// Separates the reason why a server ended from the last lines of its output.
pub const LAST_LINES: &str = "; its last lines";

impl Spoiled {
    /// Whether this shows that the server does not sustain the load, provided that the server responds well
    /// between the attempts and each attempt ends like this. Such a server rejects the load or crashes under it.
    /// An unknown model, a rejected key, a lost worker or a server that never started shows nothing about the
    /// load.
    pub(crate) fn is_of_the_load(&self) -> bool {
        match self.cause {
            SpoilCause::UnknownModel | SpoilCause::Unauthorized => false,
            SpoilCause::WorkerLost | SpoilCause::NotStarted => false,
            // Earlier versions recorded a server that did not start with this cause, too.
            SpoilCause::ServerDied => !self.detail.contains(BEFORE_READY),
            SpoilCause::RateLimited | SpoilCause::BadGateway | SpoilCause::Unavailable => true,
            SpoilCause::Refused | SpoilCause::Reset | SpoilCause::Silent => true,
        }
    }

    /// Returns the detail on one line. If the detail contains the last lines of a server's output, only the
    /// last line is kept.
    pub fn in_one_line(&self) -> String {
        match self.detail.split_once(LAST_LINES) {
            Some((reason, lines)) => {
                format!("{reason}; its last line: {}", lines.lines().last().unwrap_or_default().trim())
            }
            None => self.detail.clone(),
        }
    }
}

/// The causes that can spoil an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpoilCause {
    /// A gateway or the server limits the rate: HTTP 429.
    RateLimited,
    /// The API key is rejected: HTTP 401 or 403.
    Unauthorized,
    /// The server does not have the model, or no longer has it: HTTP 404.
    UnknownModel,
    /// A gateway cannot reach its server: HTTP 502.
    BadGateway,
    /// The server reports that it is not available: HTTP 503.
    Unavailable,
    /// Nothing listens on the port, or connections do not open in time.
    Refused,
    /// Connections are reset.
    Reset,
    /// The server sends no more data, and probes outside the load get no response either.
    Silent,
    /// The server process that sweepline started has ended, or ended before it was ready in a version that
    /// did not know [`SpoilCause::NotStarted`].
    ServerDied,
    /// The server process that sweepline started ended before it was ready.
    NotStarted,
    /// A worker, a process that sends a share of the load, has ended or cannot be reached.
    WorkerLost,
}

impl SpoilCause {
    /// Returns the short form for tables, such as `429` in `given up: 429 (3 of 3)`.
    pub fn short(self) -> &'static str {
        match self {
            SpoilCause::RateLimited => "429",
            SpoilCause::Unauthorized => "401",
            SpoilCause::UnknownModel => "404",
            SpoilCause::BadGateway => "502",
            SpoilCause::Unavailable => "503",
            SpoilCause::Refused => "connection refused",
            SpoilCause::Reset => "connection reset",
            SpoilCause::Silent => "no response",
            SpoilCause::ServerDied => "server process ended",
            SpoilCause::NotStarted => "server did not start",
            SpoilCause::WorkerLost => "worker lost",
        }
    }

    /// Returns why a run was given up: `429 (3 of 3)`, that is, after all of its `retries` retries. The runs of a
    /// server that did not start are not retried one by one.
    pub fn given_up(self, retries: u32) -> String {
        match self {
            SpoilCause::NotStarted => self.to_string(),
            cause => format!("{cause} ({retries} of {retries})"),
        }
    }
}

impl fmt::Display for SpoilCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_did_not_start_shows_nothing_about_the_load_in_earlier_records_either() {
        let spoiled = |cause, detail: &str| Spoiled { cause, detail: detail.to_owned(), retry_after: None };
        let early = format!("the server ended with exit code 2 after 80ms, {BEFORE_READY}");
        assert!(!spoiled(SpoilCause::NotStarted, &early).is_of_the_load());
        assert!(!spoiled(SpoilCause::ServerDied, &early).is_of_the_load());
        assert!(spoiled(SpoilCause::ServerDied, "the server process ended during the run").is_of_the_load());
    }
}
