//! The types of values in a request's row: phase, outcome, source of counts, source of timestamps, and
//! origin of the connection.
//!
//! Times are nanoseconds on the monotonic clock since the run's start; `None` if the event never happened.
//! `docs/METRICS.md` defines each of these times; `schema` names the columns.

use std::borrow::Cow;

use strum::{Display, EnumString, IntoStaticStr};

use super::cell::stored_as_text;

/// The part of a run in which a request was scheduled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// The load rises to its full level.
    #[default]
    Fill,
    /// The load is full, but not yet measured.
    Stabilize,
    /// The measure window.
    Measure,
    /// The load continues until every measured request has ended.
    Drain,
}

impl Phase {
    /// All phases, in the order in which they occur.
    pub const ALL: [Phase; 4] = [Phase::Fill, Phase::Stabilize, Phase::Measure, Phase::Drain];

    /// Returns the name that is stored in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// A complete response.
    Ok,
    /// No connection: refused, unreachable, TLS failed, or not opened in time.
    Connect,
    /// The response was not complete within the request timeout.
    Timeout,
    /// An HTTP status other than 2xx.
    #[strum(to_string = "http_{0}")]
    Http(u16),
    /// The connection broke before the response was complete.
    Reset,
    /// Nothing was received for longer than the stall timeout.
    Stalled,
    /// Truncated JSON, an unexpected structure, invalid UTF-8, or a line beyond the size limit.
    Malformed,
    /// An error object inside a stream with HTTP status 200.
    StreamError,
    /// A complete response without any text.
    Empty,
    /// The server gave up: its finish reason is `abort`, `error`, or another of this kind.
    Aborted,
    /// A stream was requested, and the whole response came at once.
    NotStreamed,
    /// The server process that sweepline started has ended.
    ServerDied,
    /// The request was still in flight at the end of drain.
    #[default]
    CutAtDrain,
}

impl Outcome {
    /// Whether the request counts as completed.
    pub fn is_ok(self) -> bool {
        self == Outcome::Ok
    }

    /// Parses the name of an outcome in rows; `None` if the name is unknown.
    pub fn parse(text: &str) -> Option<Outcome> {
        match text.strip_prefix("http_") {
            Some(status) => status.parse().ok().map(Outcome::Http),
            None => text.parse().ok(),
        }
    }

    /// Returns the name that is stored in rows.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Outcome::Http(_) => Cow::Owned(self.to_string()),
            other => Cow::Borrowed(other.into()),
        }
    }
}

/// Source of the output token count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TokenSource {
    /// The server's `usage`.
    Usage,
    /// The server's `timings` (llama.cpp).
    Timings,
    /// The model's tokenizer, applied to the text.
    Tokenizer,
    /// Nothing counted the tokens, and the events have the size of tokens, so each event counts as one.
    Events,
}

/// Why the number of tokens that were streamed is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TokensUnknown {
    /// The server counts reasoning that it did not stream, or only as a summary, and nothing counts the rest.
    HiddenReasoning,
    /// Nothing counted the tokens, and the events are larger or smaller than tokens.
    TokensByEvents,
    /// The server's counts are impossible.
    ImpossibleUsage,
    /// The stream has several choices.
    SeveralChoices,
}

impl TokensUnknown {
    /// Returns the name that is stored in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl TokenSource {
    /// Returns the name that is stored in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Source of the receive timestamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Stamp {
    /// Our own clock, read right after the bytes were read.
    #[default]
    User,
    /// The kernel's clock, read when the bytes arrived.
    Kernel,
}

impl Stamp {
    /// Returns the name that is stored in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Origin of a request's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Connection {
    /// Opened for this request.
    New,
    /// Opened for an earlier request.
    Reused,
}

impl Connection {
    /// Returns the name that is stored in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

stored_as_text! {
    Phase: |text: &str| text.parse().ok(),
    Outcome: Outcome::parse,
    TokenSource: |text: &str| text.parse().ok(),
    TokensUnknown: |text: &str| text.parse().ok(),
    Stamp: |text: &str| text.parse().ok(),
    Connection: |text: &str| text.parse().ok(),
}
