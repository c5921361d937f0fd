//! The words that a request's row is written in: phase, outcome, who counted, who stamped.
//!
//! Instants are nanoseconds on the monotonic clock since the run's start; `None` where the instant never came. METRICS
//! defines each of them; `schema` names the columns.

use std::borrow::Cow;
use std::fmt;

use super::cell::stored_as_text;

/// The part of a run in which a request was scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// Load rises.
    Fill,
    /// Full load, not measured.
    Stabilize,
    /// The window.
    Measure,
    /// Load is kept up until every measured request has ended.
    Drain,
}

impl Phase {
    /// All phases in their order.
    pub const ALL: [Phase; 4] = [Phase::Fill, Phase::Stabilize, Phase::Measure, Phase::Drain];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A whole answer.
    Ok,
    /// No connection: refused, unreachable, TLS failed, or not open in time.
    Connect,
    /// Not done within the request timeout.
    Timeout,
    /// An HTTP status other than 2xx.
    Http(u16),
    /// The connection broke before the answer was whole.
    Reset,
    /// Nothing came for the stall timeout.
    Stalled,
    /// Cut JSON, a wrong shape, invalid UTF-8, or a line beyond every bound.
    Malformed,
    /// An error object inside a 200 stream.
    StreamError,
    /// A whole answer without any text.
    Empty,
    /// The server process that sweepline started is gone.
    ServerDied,
    /// Still under way at the end of drain.
    CutAtDrain,
}

impl Outcome {
    /// Whether the request counts as completed.
    pub fn is_ok(self) -> bool {
        self == Outcome::Ok
    }

    /// The outcome named `text`, as rows print it.
    pub fn parse(text: &str) -> Option<Outcome> {
        Some(match text {
            "ok" => Outcome::Ok,
            "connect" => Outcome::Connect,
            "timeout" => Outcome::Timeout,
            "reset" => Outcome::Reset,
            "stalled" => Outcome::Stalled,
            "malformed" => Outcome::Malformed,
            "stream_error" => Outcome::StreamError,
            "empty" => Outcome::Empty,
            "server_died" => Outcome::ServerDied,
            "cut_at_drain" => Outcome::CutAtDrain,
            _ => Outcome::Http(text.strip_prefix("http_")?.parse().ok()?),
        })
    }
}

impl Outcome {
    /// The name in rows.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Outcome::Ok => "ok",
            Outcome::Connect => "connect",
            Outcome::Timeout => "timeout",
            Outcome::Reset => "reset",
            Outcome::Stalled => "stalled",
            Outcome::Malformed => "malformed",
            Outcome::StreamError => "stream_error",
            Outcome::Empty => "empty",
            Outcome::ServerDied => "server_died",
            Outcome::CutAtDrain => "cut_at_drain",
            Outcome::Http(status) => return Cow::Owned(format!("http_{status}")),
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

/// Who counted the output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TokenSource {
    /// The server's `usage`.
    Usage,
    /// The model's tokenizer over the text.
    Tokenizer,
    /// Nobody: each token event counts as one.
    Events,
}

impl TokenSource {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Who stamped the receiving instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Stamp {
    /// Our own clock read, right after the bytes were read.
    User,
    /// The kernel, when the bytes arrived.
    Kernel,
}

impl Stamp {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where the connection of a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Connection {
    /// Opened for this request.
    New,
    /// Opened for an earlier one.
    Reused,
}

impl Connection {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

stored_as_text! {
    Phase: |text: &str| Phase::ALL.into_iter().find(|one| one.name() == text),
    Outcome: |text: &str| Outcome::parse(text),
    TokenSource: |text: &str| {
        [TokenSource::Usage, TokenSource::Tokenizer, TokenSource::Events].into_iter().find(|one| one.name() == text)
    },
    Stamp: |text: &str| [Stamp::User, Stamp::Kernel].into_iter().find(|one| one.name() == text),
    Connection: |text: &str| [Connection::New, Connection::Reused].into_iter().find(|one| one.name() == text),
}
