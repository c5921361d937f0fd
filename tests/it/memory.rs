//! Tests that the memory of the process is constant, however long the run is, both while tokens arrive at
//! a high rate and while a long run is judged.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest, Sha256};
use sweepline::rows::{Journal, Outcome, Phase, Record, RunReader, read_samples, seal};

use super::lab::{Lab, Run, wait_for};
use super::mock::Mock;
use super::outcomes::plan;

/// Growth after the warm-up that counts as allocator noise; it is less than the rows of half a
/// minute.
const MOST_GROWTH: u64 = 24 << 20;

fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())?;
    Some(kib * 1024)
}

#[timed_test]
fn memory_is_flat_under_many_tokens() {
    let mock = Mock::start_with(&["--slots", "64"], |command| command);
    let lab = Lab::new();
    let rest = "phases: { fill: 1s, stabilize: 4s, measure: 25s, drain: 30s }\n\
         sweeps: { s: { matrix: { endpoint: [a], model: [m], scenario: [short], batch_size: [32] } } }\n";
    lab.write("plan.yaml", &plan(&[("a", mock.port)], rest).replace("output_tokens: 8", "output_tokens: 200"));
    let mut running = lab.start(&["run", "plan.yaml"]);
    mock.log(300);
    let (start, mut seen) = (Instant::now(), Vec::new());
    wait_for("the end of the run's window", || {
        std::thread::sleep(Duration::from_millis(100));
        assert!(!running.has_ended(), "the window is longer than the observation");
        seen.extend(resident(running.id()));
        (start.elapsed() > Duration::from_secs(22)).then_some(())
    });
    running.end();
    // The first quarter warms up: buffers and batches reach their final sizes.
    let (warm, rest) = seen.split_at(seen.len() / 4);
    let (before, after) = (warm.iter().max().unwrap(), rest.iter().max().unwrap());
    assert!(rest.len() >= 50);
    assert!(*after < before + MOST_GROWTH, "from {before} to {after} bytes");

    let run = lab.only_run();
    let tokens: u64 = run.records.iter().map(|record| u64::from(record.row.events)).sum();
    assert!(tokens > 50_000, "the rate was too low: {tokens} tokens");
    println!("{tokens} tokens, {} requests; resident {before} bytes after warm-up, at most {after}", run.records.len());
    let samples = read_samples(&run.dir.join("samples.parquet")).unwrap();
    for name in ["in_flight", "resident_bytes", "cpu_seconds_total", "token_events_total"] {
        let series: Vec<f64> =
            samples.iter().filter(|s| s.source == "generator" && s.name == name).map(|s| s.value).collect();
        assert!(series.len() >= 10, "{name}: {} points in half a minute", series.len());
        assert!(series.iter().any(|value| *value > 0.0), "{name}");
        if name.ends_with("_total") {
            assert!(series.is_sorted(), "{name} never decreases");
        }
    }
    let instants: Vec<u64> = samples.iter().filter(|s| s.name == "in_flight").map(|s| s.at_ns).collect();
    assert!(instants.is_sorted() && *instants.last().unwrap() > 25_000_000_000);
    let largest = samples.iter().filter(|s| s.name == "in_flight").map(|s| s.value).fold(0.0, f64::max);
    assert!(largest <= 32.0, "never more than the number of slots: {largest}");
}

/// Replaces a committed run with one that has `requests` requests with `gaps` gaps each.
fn lengthen(run: &Run, requests: u64, gaps: u64) {
    let whole = run.records.iter().find(|record| record.row.phase == Phase::Measure && record.row.outcome.is_ok());
    let model = &whole.expect("a whole request").row;
    let journal = run.dir.join("journal");
    let mut writer = Journal::create(&journal, &RunReader::open(&run.dir).unwrap().labels).unwrap();
    for request in 0..requests {
        let row =
            sweepline::rows::RequestRow { request, events: gaps as u32 + 1, outcome: Outcome::Ok, ..model.clone() };
        let gaps_ns = (0..gaps).map(|gap| 500_000 + (request * gaps + gap) * 7919 % 1_000_003).collect();
        writer.append(&[Record { row, gaps_ns }]).unwrap();
    }
    writer.finish().unwrap();
    seal(&journal, &run.dir).unwrap();
    std::fs::remove_file(journal).unwrap();
    let mut committed = run.json.clone();
    for name in ["requests.parquet", "events.parquet"] {
        let bytes = std::fs::read(run.dir.join(name)).unwrap();
        let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        committed["files"][name] = json!({ "bytes": bytes.len(), "sha256": sha256, "rows": requests });
    }
    run.put_old_record(committed);
}

/// Returns the peak memory of `show` for the run in `dir`, and its ITL.
fn shown(lab: &Lab, dir: &Path) -> (u64, serde_json::Value) {
    let id = dir.file_name().unwrap().to_str().unwrap();
    let mut running = lab.start(&["show", id, "--format", "json"]);
    let mut most = 0;
    while !running.has_ended() {
        most = most.max(resident(running.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    (most, ended.json()["metrics"].clone())
}

#[timed_test]
fn judging_a_long_run_does_not_hold_it() {
    let mock = Mock::start_with(&["--slots", "8"], |command| command);
    let lab = Lab::new();
    let rest = "phases: { fill: 0s, stabilize: 0s, measure: 1s, drain: 10s }\n\
         sweeps: { s: { matrix: { endpoint: [a], model: [m], scenario: [short], batch_size: [2] } } }\n";
    lab.write("plan.yaml", &plan(&[("a", mock.port)], rest));
    // On a busy machine the run may be invalid; its rows are replaced by those that are judged
    // below.
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let [short, long] = [400, 8_000].map(|gaps| {
        lengthen(&run, 400, gaps);
        let (most, metrics) = shown(&lab, &run.dir);
        assert_eq!(metrics["itl_n"], json!(400 * gaps));
        most
    });
    println!("160 000 gaps: {short} bytes; 3.2 million: {long}");
    // In memory, the rows would take 26 MB, and the same again for each copy.
    assert!(long < short + (16 << 20), "from {short} to {long} bytes");
}
