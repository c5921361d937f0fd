//! The table of requests: the columns of `requests.parquet`, and the metrics of each request.

use crate::analysis::ANALYSIS;
use crate::analysis::request::{Metric, Observation};
use crate::analysis::stalls::stalled_ns;
use crate::analysis::window;
use crate::metrics;
use crate::rows::{Facts, Measured, RequestRow};

use super::Kind::{Bool, Float, Int, Text};
use super::breakdown::Named;
use super::runs::{label_cells, label_columns, name_cells, name_columns};
use super::{Cell, Column, Kind, Sheet, analysis_column};

/// A column that is taken directly from a stored row: its name, kind, meaning, when it is null (empty if it
/// never is), and a function that returns its value.
type RowColumn = (&'static str, Kind, &'static str, &'static str, fn(&RequestRow) -> Cell);

/// The columns that are taken directly from a stored row, named as in `requests.parquet`.
#[rustfmt::skip]
const ROW: [RowColumn; 46] = [
    ("request", Int, "Number of the request in its run, from 0.", "", |r| r.request.into()),
    ("phase", Text, "Phase in which the request was scheduled: fill, stabilize, measure or drain.", "", |r| r.phase.name().into()),
    ("class", Text, "Class of a mix.", "no classes", |r| r.class.clone().into()),
    ("conversation", Int, "Number of the conversation, from 0.", "none", |r| r.conversation.into()),
    ("turn", Int, "Turn of the conversation, from 0.", "none", |r| r.turn.into()),
    ("scheduled_ns", Int, "Time at which the request was due according to the load pattern; in ns since the run's start, like all times.", "", |r| r.scheduled_ns.into()),
    ("released_ns", Int, "Time at which the in-flight cap released the request.", "never", |r| r.released_ns.into()),
    ("sent_ns", Int, "Time just before the write call that carries the request.", "never", |r| r.sent_ns.into()),
    ("headers_ns", Int, "Time of the response headers.", "never", |r| r.headers_ns.into()),
    ("first_chunk_ns", Int, "Time of the first SSE data event of any kind.", "never", |r| r.first_chunk_ns.into()),
    ("first_token_ns", Int, "Time of the first event with text.", "never", |r| r.first_token_ns.into()),
    ("first_output_ns", Int, "Time of the first event with content or a tool call.", "never", |r| r.first_output_ns.into()),
    ("last_token_ns", Int, "Time of the last event with text.", "never", |r| r.last_token_ns.into()),
    ("done_ns", Int, "Time of the end of the stream.", "never", |r| r.done_ns.into()),
    ("ended_ns", Int, "Time at which the request ended, with any outcome.", "it never started", |r| r.ended_ns.into()),
    ("dns_ns", Int, "Duration of the name lookup.", "connection reused", |r| r.dns_ns.into()),
    ("connect_ns", Int, "Duration of the TCP handshake.", "connection reused", |r| r.connect_ns.into()),
    ("tls_ns", Int, "Duration of the TLS handshake.", "connection reused, or no TLS", |r| r.tls_ns.into()),
    ("stamp", Text, "Source of the receive timestamps: user or kernel.", "", |r| r.stamp.name().into()),
    ("read_delay_ns", Int, "Time of our read minus the kernel's timestamp, at the first token.", "user timestamps", |r| r.read_delay_ns.into()),
    ("outcome", Text, "Outcome of the request.", "", |r| r.outcome.name().into()),
    ("http_status", Int, "Status of the response.", "no response", |r| r.http_status.into()),
    ("error", Text, "The error.", "no error", |r| r.error.clone().into()),
    ("finish_reason", Text, "The server's reason for stopping.", "none given", |r| r.finish_reason.clone().into()),
    ("prompt_tokens", Int, "Prompt tokens as counted by the server.", "not counted", |r| r.prompt_tokens.into()),
    ("cached_tokens", Int, "Prompt tokens from the prefix cache.", "not reported by the server", |r| r.cached_tokens.into()),
    ("output_tokens", Int, "Output tokens.", "not counted", |r| r.output_tokens.into()),
    ("reasoning_tokens", Int, "Output tokens that were reasoning.", "not reported by the server", |r| r.reasoning_tokens.into()),
    ("requested_tokens", Int, "Requested output tokens.", "", |r| r.requested_tokens.into()),
    ("intended_prompt_tokens", Int, "Intended prompt tokens: our own count or estimate.", "", |r| r.intended_prompt_tokens.into()),
    ("reusable_tokens", Int, "Leading prompt tokens shared with an earlier request.", "unknown", |r| r.reusable_tokens.into()),
    ("content_wait_ns", Int, "Part of the lateness spent waiting for content.", "not sent", |r| r.content_wait_ns.into()),
    ("token_source", Text, "Source of the token count: usage, timings, tokenizer or events.", "not counted", |r| r.token_source.map(|source| source.name()).into()),
    ("streamed_tokens", Int, "Output tokens whose text was streamed; metrics per token use them.", "unknown, or nothing was streamed", |r| r.streamed_tokens.into()),
    ("tokens_unknown", Text, "Reason why the streamed tokens are unknown.", "known, or nothing was streamed", |r| r.tokens_unknown.map(|reason| reason.name()).into()),
    ("usage_doubt", Text, "Reason why the server's usage is implausible.", "plausible, or no usage", |r| r.usage_doubt.clone().into()),
    ("server_queue_ns", Int, "Time in the server's queue, as the server reports it for this request.", "not reported by the server", |r| r.server_queue_ns.into()),
    ("server_prefill_ns", Int, "Prefill time, as the server reports it for this request.", "not reported by the server", |r| r.server_prefill_ns.into()),
    ("server_decode_ns", Int, "Time from the first token to the last, as the server reports it for this request.", "not reported by the server", |r| r.server_decode_ns.into()),
    ("server_total_ns", Int, "Total time, as the server reports it for this request.", "not reported by the server", |r| r.server_total_ns.into()),
    ("trace_id", Text, "The server's id for the request.", "none returned", |r| r.trace_id.clone().into()),
    ("events", Int, "Token events.", "", |r| r.events.into()),
    ("unread_events", Int, "Events of an unknown shape, which were skipped.", "not counted by older versions", |r| r.unread_events.into()),
    ("bytes", Int, "Bytes of the response body.", "", |r| r.bytes.into()),
    ("text_digest", Text, "First 16 hex digits of SHA-256 over content and reasoning.", "no text", |r| r.text_digest.clone().into()),
    ("measured", Bool, "Whether the request belongs to the measurement.", "", |r| Cell::Bool(r.phase == crate::rows::Phase::Measure)),
];

/// Returns the columns; `axes` lists the further axes of all runs (`run_row::axes`).
pub fn columns(axes: &[String]) -> Vec<Column> {
    let of_row = |(name, kind, doc, null, _): &RowColumn| Column::new(*name, *kind, *doc).null(*null);
    let mut others: Vec<Column> = ROW.iter().map(of_row).collect();
    others.extend(Metric::ALL.iter().copied().map(of_metric));
    others.push(stalled_column());
    others.push(analysis_column());
    let mut columns = name_columns();
    columns.extend(label_columns(axes, &others));
    columns.extend(others);
    columns
}

/// The column for the stalls of the response.
fn stalled_column() -> Column {
    let doc = "Excess over the response's median gap between tokens, for gaps longer than five times the median.";
    let null = "fewer than eight gaps, tokens in bunches, or a failed request";
    Column::new("stalled_ms", Float, doc).null(null)
}

/// The column of a metric of one request, from the table of metrics.
fn of_metric(metric: Metric) -> Column {
    let entry = metric.entry();
    let null = match entry.kind {
        metrics::Kind::Distribution { null_of_request, .. } => null_of_request,
        _ => entry.null_when,
    };
    Column::new(entry.column(), Float, format!("{}.", entry.definition)).null(null)
}

/// Returns the table of all requests of `runs`, in the order given. `axes` lists the further axes of all runs
/// (`run_row::axes`). `runs` may read each row lazily, so that only a few rows are in memory at a time.
pub(crate) fn sheet<'a, R>(
    axes: &[String],
    plan: Option<&'a str>,
    runs: impl Iterator<Item = (Named, Facts, R)> + 'a,
) -> Sheet<'a>
where
    R: Iterator<Item = (RequestRow, Vec<u64>)> + 'a,
{
    let (columns, axes) = (columns(axes), axes.to_vec());
    let rows = runs.flat_map(move |((sweep, labels), facts, rows)| {
        let mut names = name_cells(plan, sweep.as_deref()).to_vec();
        names.extend(label_cells(&labels, &axes));
        let mut room = Vec::new();
        rows.map(move |(row, gaps)| cells(&names, (&row, &gaps), &facts, &mut room))
    });
    Sheet { columns, rows: Box::new(rows) }
}

fn cells(labels: &[Cell], (row, gaps): (&RequestRow, &[u64]), facts: &Facts, room: &mut Vec<u64>) -> Vec<Cell> {
    let believed = row.believed();
    let row = believed.as_ref().unwrap_or(row);
    let measured = Measured::from(row);
    let request = window::request(&measured, facts);
    let metric = |metric: Metric| match request.observe(metric) {
        Observation::Value(value) => Cell::from(value),
        Observation::Failed(_) | Observation::Undefined => Cell::Null,
    };
    let own = ROW.iter().map(|(.., get)| get(row));
    let is_read = facts.stream && row.outcome.is_ok();
    let stalled = is_read.then(|| stalled_ns(gaps, room)).flatten().map(|ns| ns as f64 / 1e6);
    let metrics = Metric::ALL.iter().copied().map(metric);
    labels.iter().cloned().chain(own).chain(metrics).chain([stalled.into(), ANALYSIS.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::synthetic::{Run, fail};
    use crate::export::Csv;
    use crate::export::sheet::tests::written;
    use crate::rows::{Outcome, RunLabels};

    #[test]
    fn a_request_has_its_columns_and_its_metrics() {
        let (mut records, facts) = Run { seconds: 0.2, jitter: 0.0, ..Run::default() }.make();
        fail(&mut records[1], Outcome::Http(503), 1_000_000);
        let rows = records.into_iter().map(|record| (record.row, record.gaps_ns));
        let labels =
            RunLabels { axes: [("output_tokens".to_string(), "16".to_string())].into(), ..RunLabels::default() };
        let axes = super::super::run_row::axes([&labels].into_iter());
        let text = written(&Csv, sheet(&axes, None, [((None, labels), facts, rows)].into_iter()));
        let mut lines = text.lines();
        insta::assert_snapshot!(lines.next().unwrap().replace(',', " "), @r#"plan sweep endpoint model scenario batch_size qps axis_output_tokens repeat run_id attempt request phase class conversation turn scheduled_ns released_ns sent_ns headers_ns first_chunk_ns first_token_ns first_output_ns last_token_ns done_ns ended_ns dns_ns connect_ns tls_ns stamp read_delay_ns outcome http_status error finish_reason prompt_tokens cached_tokens output_tokens reasoning_tokens requested_tokens intended_prompt_tokens reusable_tokens content_wait_ns token_source streamed_tokens tokens_unknown usage_doubt server_queue_ns server_prefill_ns server_decode_ns server_total_ns trace_id events unread_events bytes text_digest measured ttft_ms ttft_from_schedule_ms ttfo_ms e2e_ms e2e_from_schedule_ms tpot_ms lateness_ms connecting_ms cap_wait_ms user_throughput_tokens_per_s generation_throughput_tokens_per_s stalled_ms analysis"#);
        insta::assert_snapshot!(lines.next().unwrap(), @r#",,,,,,,16,0,,0,0,stabilize,,,,0,0,20000,20020000,20020000,20020000,20020000,80020000,80020000,80020000,,,,user,,ok,200,,length,50,,16,,16,50,,,usage,16,,,,,,,,16,,1000,,false,20,20.02,20,80,80.02,4,0.02,,0,200,250,0,5"#);
        insta::assert_snapshot!(lines.next().unwrap(), @r#",,,,,,,16,0,,0,0,stabilize,,,,0,0,20000,20020000,,,,,1020000,1020000,,,,user,,http_503,200,,length,,,,,16,50,,,,,,,,,,,,0,,1000,,false,,,,,,,0.02,,0,,,,5"#);
    }
}
