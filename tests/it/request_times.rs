//! Tests the times that a server reports for each request, in every form, compared with the mock's
//! log.

use std::collections::HashMap;

use serde_json::Value;
use sweepline::rows::RequestRow;

use lab::mock::Mock;
use lab::{Lab, Run};

/// There is one slot for two requests at a time, so one of them waits in the queue.
const FLAGS: [&str; 7] = ["--ttft", "20ms", "--itl", "2ms", "--slots", "1", "--trace-ids"];

const PLAN: &str = "\
sweepline: 1
name: times
endpoints: { one: { engine: vllm, url: URL, HTTP } }
models: { m: { id: tiny } }
scenarios: { short: { base: B1, output_tokens: 12, STREAM } }
phases: { fill: 100ms, stabilize: 200ms, measure: 1s, drain: 2s }
validity: { client_late: { suspect: 100%, invalid: 100% }, unsteady: { suspect: 99% } }
sweeps: { two: { matrix: { batch_size: 2 } } }
";

/// Returns a run against a mock that reports times in this form, and its log by the number of the request
/// in the run.
fn measured(form: &str, http: &str, stream: &str) -> (Lab, Run, HashMap<u64, Value>) {
    let mock = Mock::start(&[&FLAGS[..], &["--tell-times", form]].concat());
    let url = format!("http://127.0.0.1:{}/v1", mock.port);
    let lab = Lab::new();
    lab.write("plan.yaml", &PLAN.replace("URL", &url).replace("HTTP", http).replace("STREAM", stream));
    lab.ok(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let number = |line: &Value| line["request_id"].as_str()?.rsplit('-').next()?.parse().ok();
    let lines = mock.log_now().into_iter().filter(|line| line["trace_id"].is_string());
    let log = lines.filter_map(|line| Some((number(&line)?, line))).collect();
    (lab, run, log)
}

/// Returns the nanoseconds between two instants of the log.
fn between(line: &Value, from: &str, to: &str) -> u64 {
    line[to].as_u64().unwrap() - line[from].as_u64().unwrap()
}

/// Returns the times of a row according to the log: queue, prefill, decode, total.
fn done(line: &Value) -> [u64; 4] {
    [("body_ns", "slot_ns"), ("slot_ns", "first_write_ns"), ("first_write_ns", "last_write_ns"), ("body_ns", "done_ns")]
        .map(|(from, to)| between(line, from, to))
}

/// Compares each completed row with its log line: reported times are close, and unreported ones are
/// null. A write happens shortly after its intended instant, and later on a busy machine.
fn compared(run: &Run, log: &HashMap<u64, Value>, told: [bool; 4], coarse_ns: u64) {
    let rows: Vec<&RequestRow> =
        run.records.iter().map(|record| &record.row).filter(|row| row.outcome.is_ok()).collect();
    assert!(rows.len() > 20, "{}", rows.len());
    let (mut sums, mut logged) = ([0; 4], [0; 4]);
    for row in &rows {
        let line = &log[&row.request];
        assert_eq!(row.trace_id.as_deref(), line["trace_id"].as_str());
        let times = row.server_times();
        let found = [times.queue_ns, times.prefill_ns, times.decode_ns, times.total_ns];
        assert_eq!(found.map(|ns| ns.is_some()), told, "{row:?}");
        let (mut found, mut done) = (found, done(line));
        if line["stream"] == false {
            // All output is written at once, with the last token.
            (found[1], found[2]) = (found[1].zip(found[2]).map(|(prefill, decode)| prefill + decode), None);
            (done[1], done[2]) = (between(line, "slot_ns", "last_write_ns"), 0);
        }
        for (at, (found, done)) in found.into_iter().zip(done).enumerate() {
            sums[at] += found.unwrap_or(done);
            logged[at] += done;
        }
        if let Some(queue) = times.queue_ns {
            assert!(queue.abs_diff(between(line, "body_ns", "slot_ns")) <= coarse_ns.max(1), "{queue} {line}");
        }
    }
    for (sum, logged) in sums.into_iter().zip(logged) {
        let room = (logged / 20).max(rows.len() as u64 * (1_500_000 + coarse_ns));
        assert!(sum.abs_diff(logged) <= room, "{sums:?} {logged}");
    }
}

#[test]
fn llama_cpp_tells_prefill_and_decode_in_the_last_chunk() {
    let (lab, run, log) = measured("timings", "http: 1.1", "stream: true");
    compared(&run, &log, [false, true, true, false], 0);
    // Without a metrics page, the sums use the values in responses.
    let id = run.json["id"].as_str().unwrap();
    let shown = lab.ok(&["show", id, "--format", "json"]).json();
    lab.follows("show", &shown);
    let e2e = &shown["parts"][1];
    let part =
        |name: &str| e2e["parts"].as_array().unwrap().iter().find(|part| part["name"] == name).unwrap()["ms"].as_f64();
    let (prefill, decode) = (part("prefill").unwrap(), part("decode").unwrap() + part("stalls").unwrap_or(0.0));
    // Tokens have absolute due times, so the lateness of the first token does not delay the others.
    assert!(prefill >= 19.9 && prefill + decode >= 41.0, "{e2e:#}");
    assert_eq!((part("queue"), part("server_unassigned")), (None, None), "it does not report its queue: {e2e:#}");
    assert!(part("unknown").unwrap() > 10.0, "{e2e:#}");
    // The table of requests also contains these times.
    let columns = "request,server_prefill_ns,server_decode_ns,server_queue_ns,trace_id,stalled_ms";
    let table = lab.ok(&["export", "--rows", "requests", "--format", "json", "--columns", columns]).json();
    let row = table.as_array().unwrap().iter().find(|row| row["server_prefill_ns"].is_u64()).unwrap();
    let record = run.records.iter().find(|record| row["request"] == record.row.request).unwrap();
    assert_eq!(row["server_decode_ns"].as_u64(), record.row.server_decode_ns);
    assert!(row["server_queue_ns"].is_null() && row["trace_id"].as_str() == record.row.trace_id.as_deref(), "{row}");
}

#[test]
fn server_timing_of_a_stream_tells_the_queue_alone() {
    let (_, run, log) = measured("server-timing", "http: 2", "stream: true");
    compared(&run, &log, [true, false, false, false], 0);
}

#[test]
fn server_timing_of_a_whole_answer_tells_all() {
    let (lab, run, log) = measured("server-timing", "http: 1.1", "stream: false");
    compared(&run, &log, [true; 4], 0);
    let shown = lab.ok(&["show", run.json["id"].as_str().unwrap(), "--format", "json"]).json();
    let e2e = &shown["parts"][0];
    assert!(e2e["of"] == "e2e" && e2e["assigned_share"].as_f64().unwrap() > 0.9, "{e2e:#}");
}

#[test]
fn fields_of_tgi_tell_queue_and_all_in_whole_milliseconds() {
    let (_, run, log) = measured("tgi", "http: 1.1", "stream: false");
    compared(&run, &log, [true, false, false, true], 1_000_000);
}
