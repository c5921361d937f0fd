//! One row per request: what was wanted, what was sent, what came back and when.
//!
//! Instants are nanoseconds on the monotonic clock since the run's start; `None` where the instant never came. METRICS
//! defines each of them.

use std::collections::BTreeMap;
use std::fmt;

/// What all rows of one run share: written into every row, so that any set of files is one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunLabels {
    /// The full RunId, 64 hex digits.
    pub run_id: String,
    /// Which attempt at the run this was, from 1.
    pub attempt: u32,
    /// The plan's name of the endpoint.
    pub endpoint: String,
    /// The plan's name of the model.
    pub model: String,
    /// The plan's name of the scenario.
    pub scenario: String,
    /// Requests in flight of a closed loop, or the cap of an open one.
    pub batch_size: Option<u32>,
    /// Arrivals per second of an open loop.
    pub qps: Option<f64>,
    /// Which repeat of its cell this was, from 0.
    pub repeat: u32,
    /// The cell's values on further axes.
    pub axes: BTreeMap<String, String>,
}

/// The part of a run in which a request was scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
        match self {
            Phase::Fill => "fill",
            Phase::Stabilize => "stabilize",
            Phase::Measure => "measure",
            Phase::Drain => "drain",
        }
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

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
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
            Outcome::Http(status) => return f.pad(&format!("http_{status}")),
        })
    }
}

/// Who counted the output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
        match self {
            TokenSource::Usage => "usage",
            TokenSource::Tokenizer => "tokenizer",
            TokenSource::Events => "events",
        }
    }
}

/// Who stamped the receiving instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stamp {
    /// Our own clock read, right after the bytes were read.
    User,
    /// The kernel, when the bytes arrived.
    Kernel,
}

impl Stamp {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Stamp::User => "user",
            Stamp::Kernel => "kernel",
        }
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestRow {
    /// Number of the request in its run, from 0, in the order in which requests were wanted.
    pub request: u64,
    /// The phase in which it was scheduled.
    pub phase: Phase,
    /// Class of a mix; none where the scenario has no classes.
    pub class: Option<String>,
    /// Number of the conversation, from 0.
    pub conversation: Option<u64>,
    /// Turn of the conversation, from 0.
    pub turn: Option<u32>,
    /// The load pattern wanted the request.
    pub scheduled_ns: u64,
    /// An in-flight cap let it through; equals `scheduled_ns` where there is no cap.
    pub released_ns: Option<u64>,
    /// Just before the write call that carries the request.
    pub sent_ns: Option<u64>,
    /// Response headers arrived.
    pub headers_ns: Option<u64>,
    /// First SSE data event of any kind.
    pub first_chunk_ns: Option<u64>,
    /// First event with text: content, reasoning or tool-call arguments.
    pub first_token_ns: Option<u64>,
    /// First event with content or tool call.
    pub first_output_ns: Option<u64>,
    /// Last event with text.
    pub last_token_ns: Option<u64>,
    /// End of the stream.
    pub done_ns: Option<u64>,
    /// Duration of the name lookup of a connection opened for this request; none when reused.
    pub dns_ns: Option<u64>,
    /// Duration of the TCP handshake of a connection opened for this request; none when reused.
    pub connect_ns: Option<u64>,
    /// Duration of the TLS handshake of a connection opened for this request; none when reused or without TLS.
    pub tls_ns: Option<u64>,
    /// Who stamped the receiving instants.
    pub stamp: Stamp,
    /// Our read minus the kernel's stamp at the first token; none with user stamps.
    pub read_delay_ns: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Status of the HTTP response.
    pub http_status: Option<u16>,
    /// What went wrong, in words; never a secret.
    pub error: Option<String>,
    /// The server's reason to stop (`stop`, `length`, …).
    pub finish_reason: Option<String>,
    /// Prompt tokens as the server counted them.
    pub prompt_tokens: Option<u32>,
    /// Prompt tokens the server took from its prefix cache.
    pub cached_tokens: Option<u32>,
    /// Output tokens; `token_source` says who counted.
    pub output_tokens: Option<u32>,
    /// Output tokens that were reasoning, as the server counted them.
    pub reasoning_tokens: Option<u32>,
    /// Output tokens asked for.
    pub requested_tokens: u32,
    /// Prompt tokens meant to be sent: our own count or estimate.
    pub intended_prompt_tokens: u32,
    /// Who counted the output tokens.
    pub token_source: Option<TokenSource>,
    /// Token events: events with text.
    pub events: u32,
    /// Bytes of the response body.
    pub bytes: u64,
    /// First 16 hex digits of SHA-256 over the answer's content followed by its reasoning; none without text.
    pub text_digest: Option<String>,
}

/// What the recorder hands to the writer: one request and the gaps between its token events.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The request.
    pub row: RequestRow,
    /// Nanoseconds between successive token events; one fewer than `events`, empty without two.
    pub gaps_ns: Vec<u64>,
}
