//! Why an attempt at a run did not measure the server: the environment spoiled it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How the environment spoiled an attempt, so that its rows do not describe the server under this load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spoiled {
    /// The cause.
    pub cause: SpoilCause,
    /// Details as text, with the server's message. Contains no secrets and is safe for a terminal.
    pub detail: String,
    /// The pause that the server requested: its `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Nanos>,
}

/// Separates the reason of a server's end from its last lines of output.
pub const LAST_LINES: &str = "; its last lines";

impl Spoiled {
    /// The detail on one line. Of a server's last lines of output, only the last one is included.
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
    /// The key is rejected, now or from the start: HTTP 401 or 403.
    Unauthorized,
    /// The server does not have the model, or no longer has it: HTTP 404.
    UnknownModel,
    /// A gateway cannot reach its server: HTTP 502.
    BadGateway,
    /// The server reports that it is not available: HTTP 503.
    Unavailable,
    /// Nothing listens, or connections do not open in time.
    Refused,
    /// Connections break off.
    Reset,
    /// No more data is received, and probes outside the load get no response either.
    Silent,
    /// The server process that sweepline started has ended.
    ServerDied,
    /// A process that sent a share of the load has ended or cannot be reached.
    WorkerLost,
}

impl SpoilCause {
    /// The short form for tables: `given up: 429 (3 of 3)`.
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
            SpoilCause::WorkerLost => "worker lost",
        }
    }

    /// Whether this cause shows that the server does not sustain the load, if the server responds well
    /// between the attempts but fails in this way under the load each time. It then rejects the load or
    /// crashes under it. An unknown model, a rejected key or a lost worker shows nothing about the load.
    pub(crate) fn is_of_the_load(self) -> bool {
        !matches!(self, SpoilCause::UnknownModel | SpoilCause::Unauthorized | SpoilCause::WorkerLost)
    }
}

impl fmt::Display for SpoilCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.short())
    }
}
