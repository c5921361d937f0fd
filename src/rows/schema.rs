//! The single definition of every stored column: name, type, encoding, unit and meaning. The row types, the
//! Arrow schemas, the conversions and `schemas/columns.md` are all derived from these tables.

use std::collections::BTreeMap;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::column::{BadColumn, Column, Pack, Row, load, table};
use super::request::{Connection, Outcome, Phase, Stamp, TokenSource, TokensUnknown};

table! {
    /// The labels that all rows of one run share. They are written into every row, so the files of several
    /// runs can be read as one table.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct RunLabels {
        /// The full RunId, 64 hex digits.
        run_id: String [Dictionary ""],
        /// Number of the attempt at the run, from 1.
        attempt: u32 [Dictionary ""],
        /// Name of the endpoint in the plan.
        endpoint: String [Dictionary ""],
        /// Name of the model in the plan.
        model: String [Dictionary ""],
        /// Name of the scenario in the plan.
        scenario: String [Dictionary ""],
        /// Number of requests in flight in a closed loop, or the in-flight cap of an open loop.
        batch_size: Option<u32> [Dictionary "requests"],
        /// Arrivals per second of an open loop.
        qps: Option<f64> [Dictionary "requests/s"],
        /// Number of the repeat within its cell, from 0.
        repeat: u32 [Dictionary ""],
        /// The cell's values on axes other than endpoint, model, scenario, batch_size and qps.
        axes: BTreeMap<String, String> [Dictionary ""],
    }
}

table! {
    /// One request.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct RequestRow {
        /// Number of the request in its run, from 0, in the order of the schedule.
        request: u64 [Delta ""],
        /// The phase in which the request was scheduled: fill, stabilize, measure or drain.
        phase: Phase [Dictionary ""],
        /// Class of a mix; null if the scenario has no classes.
        class: Option<String> [Dictionary ""],
        /// Number of the conversation, from 0.
        conversation: Option<u64> [Delta ""],
        /// Turn of the conversation, from 0.
        turn: Option<u32> [Dictionary ""],
        /// Time at which the request was due according to the load pattern.
        scheduled_ns: u64 [Delta "ns"],
        /// Time at which the in-flight cap released the request; equals `scheduled_ns` if there is
        /// no cap.
        released_ns: Option<u64> [Delta "ns"],
        /// Time just before the write call that carries the request.
        sent_ns: Option<u64> [Delta "ns"],
        /// Time of the response headers.
        headers_ns: Option<u64> [Delta "ns"],
        /// Time of the first SSE data event of any kind.
        first_chunk_ns: Option<u64> [Delta "ns"],
        /// Time of the first event with text: content, reasoning or tool-call arguments.
        first_token_ns: Option<u64> [Delta "ns"],
        /// Time of the first event with content or a tool call.
        first_output_ns: Option<u64> [Delta "ns"],
        /// Time of the last event with text.
        last_token_ns: Option<u64> [Delta "ns"],
        /// Time of the end of the stream.
        done_ns: Option<u64> [Delta "ns"],
        /// Time at which the request ended, with any outcome, and its resources were released. Null if the
        /// request never started.
        ended_ns: Option<u64> [Delta "ns"],
        /// Duration of the name lookup of a connection opened for this request; null if the
        /// connection was reused.
        dns_ns: Option<u64> [Delta "ns"],
        /// Duration of the TCP handshake of a connection opened for this request; null if the
        /// connection was reused.
        connect_ns: Option<u64> [Delta "ns"],
        /// Duration of the TLS handshake of a connection opened for this request; null if the connection
        /// was reused or does not use TLS.
        tls_ns: Option<u64> [Delta "ns"],
    }
    derived {
        /// `new` if a connection was opened for this request, `reused` if it existed before: an earlier
        /// request used it, or it was opened ahead of the run (`connections: warm`); null if there was no
        /// connection. Over HTTP/2 it is also `new` if the request waited for a connection that was being
        /// opened for another request. The times are then the parts of the handshakes that this request
        /// waited for, and `connect_ns` includes its wait for the server's settings.
        connection: Option<Connection> [Dictionary ""] = RequestRow::connection,
    }
    then {
        /// Source of the receive timestamps: kernel or user.
        stamp: Stamp [Dictionary ""],
        /// Time at which we read the first token minus the kernel's timestamp for the token; null
        /// with user timestamps.
        read_delay_ns: Option<u64> [Delta "ns"],
        /// Outcome: `ok`, `connect`, `timeout`, `http_<status>`, `reset`, `stalled`, `malformed`,
        /// `stream_error`, `empty`, `aborted`, `not_streamed`, `server_died` or `cut_at_drain`.
        outcome: Outcome [Dictionary ""],
        /// Status of the HTTP response.
        http_status: Option<u16> [Dictionary ""],
        /// The error as text; never contains a secret.
        error: Option<String> [Dictionary ""],
        /// The server's reason for stopping (`stop`, `length`, …).
        finish_reason: Option<String> [Dictionary ""],
        /// Number of prompt tokens, as counted by the server.
        prompt_tokens: Option<u32> [Dictionary "tokens"],
        /// Number of prompt tokens that the server took from its prefix cache.
        cached_tokens: Option<u32> [Dictionary "tokens"],
        /// Number of output tokens, including reasoning that was not streamed; `token_source` is the source of
        /// this count.
        output_tokens: Option<u32> [Dictionary "tokens"],
        /// Number of output tokens that were reasoning, as counted by the server.
        reasoning_tokens: Option<u32> [Dictionary "tokens"],
        /// Number of requested output tokens.
        requested_tokens: u32 [Dictionary "tokens"],
        /// Intended number of prompt tokens, by our own count or estimate.
        intended_prompt_tokens: u32 [Dictionary "tokens"],
        /// Number of leading prompt tokens that an earlier request of the run also began with, or that were
        /// part of a response in the same conversation. This is the most that an unlimited prefix cache could
        /// provide. Null if unknown, or in runs of versions that did not count them; counts that may be too
        /// low are treated as null by readers.
        reusable_tokens: Option<u32> [Dictionary "tokens"],
        /// Part of the lateness: how long the client waited for the content of this request or of an
        /// earlier one. Null if the request was not sent.
        content_wait_ns: Option<u64> [Delta "ns"],
        /// Source of the output token count: usage or timings (the server), tokenizer or events.
        token_source: Option<TokenSource> [Dictionary ""],
        /// Number of output tokens whose text was streamed. Metrics per token use this number. Null if it is not
        /// known, if nothing was streamed, or in runs of versions that did not record it.
        streamed_tokens: Option<u32> [Dictionary "tokens"],
        /// Why the number of streamed tokens is not known: hidden_reasoning, tokens_by_events, impossible_usage or
        /// several_choices. Null if it is known, or if nothing was streamed.
        tokens_unknown: Option<TokensUnknown> [Dictionary ""],
        /// Why the server's `usage` of this request is implausible. An implausible usage is discarded: the
        /// counts of the response are null. Null if the usage is plausible, if there was none, or in runs of
        /// versions without the check.
        usage_doubt: Option<String> [Dictionary ""],
        /// Time in the server's queue, as the server reports it for this request in `Server-Timing`, or in
        /// TGI's headers. Null if not reported, or if the reported times exceed the time from sending to the
        /// end.
        server_queue_ns: Option<u64> [Delta "ns"],
        /// Prefill time of this request, as the server reports it in llama.cpp's `timings`, or in
        /// `Server-Timing`. Null under the same conditions as `server_queue_ns`.
        server_prefill_ns: Option<u64> [Delta "ns"],
        /// Time from the first token to the last, as the server reports it in llama.cpp's `timings`, or in
        /// `Server-Timing`. Null under the same conditions as `server_queue_ns`.
        server_decode_ns: Option<u64> [Delta "ns"],
        /// Total time of this request, as the server reports it in `Server-Timing`, or in TGI's headers.
        /// Null under the same conditions as `server_queue_ns`.
        server_total_ns: Option<u64> [Delta "ns"],
        /// The id of this request in the traces and logs of the server, or of a gateway in front of it: the
        /// trace id of the returned `traceparent`, or else the `x-request-id`. Null if neither was returned.
        trace_id: Option<String> [Plain ""],
        /// Number of token events, which are events with text.
        events: u32 [Dictionary "events"],
        /// Number of events that were valid JSON of an unknown shape, so that nothing was read from them. Null in
        /// runs of versions that did not count them.
        unread_events: Option<u32> [Dictionary "events"],
        /// Number of bytes in the response body.
        bytes: u64 [Delta "bytes"],
        /// First 16 hex digits of SHA-256 over the response's content followed by its reasoning; null
        /// without text.
        text_digest: Option<String> [Plain ""],
    }
}

impl RequestRow {
    /// Creates the row of request number `request`, scheduled at `scheduled_ns` in `phase`, with nothing
    /// recorded yet.
    pub fn wanted(request: u64, phase: Phase, scheduled_ns: u64) -> RequestRow {
        RequestRow { request, phase, scheduled_ns, ..RequestRow::default() }
    }

    /// Returns the origin of the request's connection; `None` if the request never had a connection.
    pub fn connection(&self) -> Option<Connection> {
        match (self.connect_ns, self.sent_ns) {
            (Some(_), _) => Some(Connection::New),
            (None, Some(_)) => Some(Connection::Reused),
            (None, None) => None,
        }
    }
}

table! {
    /// The token events of one request.
    #[derive(Debug, Clone, PartialEq)]
    pub struct EventRow {
        /// Number of the request in its run, from 0.
        request: u64 [Delta ""],
        /// Time of the first event with text, as in the requests table. The gaps start at this time.
        first_token_ns: Option<u64> [Delta "ns"],
        /// Times between successive token events. There is one fewer than `events`, and none if there are
        /// fewer than two events.
        gaps_ns: Vec<u64> [Gaps "ns"],
    }
}

table! {
    /// One value of a time series at one point in time.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct Sample {
        /// Time since the run's start; 0 for samples that were taken before it. The time of a scrape is the
        /// middle of its exchange.
        at_ns: u64 [Delta "ns"],
        /// Source of the sample: generator (`worker 1`, `worker 2`, … if several processes sent the load),
        /// server, gpu, host, or the network between them. `scrape` records the result of scraping a page;
        /// `raw` is a series that the plan selects from a page.
        source: String [Dictionary ""],
        /// Name of the series, with its unit: `resident_bytes`, `thread_cpu_seconds_total.io`. METRICS
        /// lists the series of the generator, and TELEMETRY lists the series of servers.
        name: String [Dictionary ""],
        /// The value.
        value: f64 [Plain "as named"],
        /// The scraped page: its index in `facts.telemetry.urls` of run.json, from 0; the GPUs of this
        /// machine are the last entry. Null for other samples.
        url: Option<u32> [Dictionary ""],
        /// Labels of a raw series, sorted by name, without braces.
        labels: Option<String> [Dictionary ""],
        /// Why a scrape failed (`up` is 0): timeout, connect, status, too_large, malformed or cut; for the
        /// GPUs of this machine also failed, no_gpu or no_device.
        error: Option<String> [Dictionary ""],
    }
}

table! {
    /// The prompt and the response of one request.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct TextRow {
        /// Number of the request in its run, from 0.
        request: u64 [Delta ""],
        /// Number of the conversation, from 0.
        conversation: Option<u64> [Delta ""],
        /// Turn of the conversation, from 0.
        turn: Option<u32> [Dictionary ""],
        /// The prompt as it was sent, including nonce, system message and history: the list of messages as
        /// JSON (chat), or the text (completions).
        prompt: String [Plain ""],
        /// The response's content, or the part of it that was received; null if there was none.
        answer: Option<String> [Plain ""],
        /// The response's reasoning, or the part of it that was received; null if there was none.
        reasoning: Option<String> [Plain ""],
        /// The response's tool calls as JSON: a list of `name` and `arguments` (a string), assembled from
        /// their pieces; null if there were none.
        tool_calls: Option<String> [Plain ""],
        /// Whether any text in this row was longer than 1 MiB and was truncated to that size.
        truncated: bool [Dictionary ""],
    }
}

/// The data of one request that the recorder passes to the writer: its row and the gaps between its token
/// events.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The request.
    pub row: RequestRow,
    /// Time between successive token events, in nanoseconds. There is one gap fewer than `events`, and none
    /// if there are fewer than two events.
    pub gaps_ns: Vec<u64>,
}

/// One of the Parquet files of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// One row per request.
    Requests,
    /// One row per request: the gaps between its token events.
    Events,
    /// Time series of the generator, the server and its GPUs.
    Samples,
    /// Prompts and responses in full; only if the plan requests them.
    Texts,
}

impl Table {
    /// All tables, in the order in which they are documented.
    pub const ALL: [Table; 4] = [Table::Requests, Table::Events, Table::Samples, Table::Texts];

    /// Returns the name of the file in a run's folder.
    pub fn file(self) -> &'static str {
        match self {
            Table::Requests => "requests.parquet",
            Table::Events => "events.parquet",
            Table::Samples => "samples.parquet",
            Table::Texts => "texts.parquet",
        }
    }

    /// Whether a run may be complete without this file.
    pub(crate) fn is_optional(self) -> bool {
        self == Table::Texts
    }

    /// Returns how many of the run's labels are stored in each row: all of them, or only `run_id` and
    /// `attempt`.
    pub(crate) fn labels(self) -> usize {
        match self {
            Table::Requests => RunLabels::COLUMNS.len(),
            Table::Events | Table::Samples | Table::Texts => 2,
        }
    }

    /// Returns the columns, in order.
    pub fn columns(self) -> impl Iterator<Item = &'static Column> {
        let own = match self {
            Table::Requests => RequestRow::COLUMNS,
            Table::Events => EventRow::COLUMNS,
            Table::Samples => Sample::COLUMNS,
            Table::Texts => TextRow::COLUMNS,
        };
        RunLabels::COLUMNS[..self.labels()].iter().chain(own)
    }

    /// Returns the Arrow schema, which is the same for every run, whatever the run's axes are.
    pub fn schema(self) -> Schema {
        Schema::new(self.columns().map(Column::field).collect::<Vec<_>>())
    }
}
