use super::*;
use crate::analysis::flow::Flow;
use crate::analysis::synthetic::{Run, fail, measured, read, record};
use crate::plan::Percentile;
use crate::rows::{Record, Replay, TokensUnknown};

const MS: u64 = 1_000_000;

/// Returns a window from 1 s to 2 s.
fn facts() -> Facts {
    let windows =
        Windows { stabilize_ns: 0, measure_start_ns: 1000 * MS, measure_end_ns: 2000 * MS, end_ns: 2500 * MS };
    Facts { windows, stream: true, batch_size: Some(2), gpus: Some(4), ..Facts::default() }
}

fn flow(records: &[Record], facts: &Facts) -> Flow {
    let (run, events) = read(records, facts, None);
    Flow::of(run.rows(), &events, facts)
}

/// Returns three requests: one that begins before the window, one inside it, and one that ends after
/// it.
fn records() -> Vec<Record> {
    let windows = facts().windows;
    vec![
        record(900 * MS, 900 * MS, 950 * MS, vec![100 * MS, 100 * MS], windows),
        record(1200 * MS, 1200 * MS, 1300 * MS, vec![100 * MS], windows),
        record(1900 * MS, 1900 * MS, 1950 * MS, vec![50 * MS, 50 * MS], windows),
    ]
}

#[test]
fn the_window_is_half_open() {
    let windows = facts().windows;
    assert!(contains(&windows, 1000 * MS) && !contains(&windows, 2000 * MS));
    assert_eq!(
        Counts::of(read(&records(), &facts(), None).0.rows(), &facts()),
        Counts { requests: 2, completed: 2, failed: 0, cut: 0 }
    );
}

#[test]
fn throughput_counts_what_falls_inside_whoever_it_belongs_to() {
    let flow = flow(&records(), &facts());
    // Events inside the window: 1050 and 1150 of the first request, both of the second, and 1950 of the
    // third (2000 is outside).
    assert_eq!(flow.output_throughput, Some(5.0));
    assert_eq!(flow.prompt_throughput, Some(100.0));
    assert_eq!(flow.request_throughput, Some(2.0));
    assert_eq!(flow.achieved_rate, Some(2.0));
    // The requests are in flight for 150 + 200 + 100 ms of the window's one second.
    assert!((flow.achieved_concurrency.unwrap() - 0.45).abs() < 1e-12);
}

#[test]
fn several_tokens_in_an_event_are_spread_over_the_events() {
    let mut records = records();
    let row = &mut records[1].row;
    (row.output_tokens, row.streamed_tokens, row.requested_tokens) = (Some(8), Some(6), 8);
    assert_eq!(flow(&records, &facts()).output_throughput, Some(3.0 + 6.0));
    assert_eq!(tokens_per_event(read(&records, &facts(), None).0.rows(), &facts()), Some(9.0 / 5.0));
    let row = &mut records[1].row;
    (row.streamed_tokens, row.tokens_unknown) = (None, Some(TokensUnknown::TokensByEvents));
    assert_eq!(flow(&records, &facts()).output_throughput, None, "events are no tokens");
}

#[test]
fn a_window_without_length_or_rows_has_no_rates() {
    let mut facts = facts();
    assert_eq!(flow(&[], &facts), Flow::default());
    facts.windows.measure_end_ns = facts.windows.measure_start_ns;
    assert_eq!(flow(&records(), &facts), Flow::default());
    let metrics = measured(&records(), &facts);
    assert_eq!((metrics.counts.requests, metrics.e2e.mean, metrics.tokens_per_event), (0, None, None));
    assert_eq!(metrics.counts.error_share(), None);
}

#[test]
fn an_uncounted_prompt_makes_the_prompt_throughput_null() {
    let mut records = records();
    records[1].row.prompt_tokens = None;
    assert_eq!(flow(&records, &facts()).prompt_throughput, None);
    records[1].row.outcome = Outcome::Reset;
    assert_eq!(flow(&records, &facts()).prompt_throughput, Some(50.0));
}

#[test]
fn a_run_is_measured_whole() {
    let metrics = measured(&records(), &facts());
    assert_eq!(metrics.output_throughput_per_gpu, Some(1.25));
    // 2 tokens in 200 ms and 3 tokens in 150 ms are 15 tokens/s on average, times two slots.
    assert!((metrics.derived_server_throughput.unwrap() - 30.0).abs() < 1e-9);
    assert_eq!(metrics.ttft.mean, Some(75.0));
    assert_eq!(metrics.itl.n, 3);
    let open = Facts { open_loop: true, gpus: None, ..facts() };
    let metrics = measured(&records(), &open);
    assert_eq!((metrics.derived_server_throughput, metrics.output_throughput_per_gpu), (None, None));
}

#[test]
fn failed_requests_stay_in_the_percentiles() {
    let (mut records, facts) = Run { jitter: 0.0, ..Run::default() }.make();
    let inside: Vec<usize> =
        (0..records.len()).filter(|i| contains(&facts.windows, records[*i].row.scheduled_ns)).collect();
    for index in inside.iter().step_by(10) {
        fail(&mut records[*index], Outcome::Reset, 3 * MS);
    }
    let metrics = measured(&records, &facts);
    assert_eq!(metrics.ttft.n, metrics.counts.requests);
    assert_eq!(metrics.ttft.failures, metrics.counts.failed);
    assert!(metrics.e2e.percentile(Percentile::P50).exact().is_some());
    assert!(metrics.e2e.percentile(Percentile::P95).to_string().starts_with("> "));
    let rates = &metrics.user_throughput;
    assert_eq!((rates.n, rates.failures), (metrics.counts.requests, metrics.counts.failed));
    assert!(rates.percentile(Percentile::P95).to_string().starts_with("< "));
}

#[test]
fn a_closed_loop_keeps_its_slots_busy() {
    let (records, facts) = Run::default().make();
    let metrics = measured(&records, &facts);
    let concurrency = metrics.flow.achieved_concurrency.unwrap();
    assert!((7.9..=8.0).contains(&concurrency), "{concurrency}");
    // Eight slots produce 8 × 16 tokens every 20 + 15 × 4 ms.
    let direct = metrics.flow.output_throughput.unwrap();
    assert!((direct / 1600.0 - 1.0).abs() < 0.02, "{direct}");
    assert!((metrics.derived_server_throughput.unwrap() / direct - 1.0).abs() < 0.02);
}
