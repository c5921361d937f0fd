//! Tests that the memory of the process is constant, however long the run is, while a long run is judged.
//! The measured suite tests it while tokens arrive at a high rate.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use sweepline::rows::{Journal, Outcome, Phase, Record, RunReader, seal};

use lab::mock::Mock;
use lab::plans::plan;
use lab::{Lab, Run};

fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())?;
    Some(kib * 1024)
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

#[test]
fn judging_a_long_run_does_not_hold_it() {
    let mock = Mock::start_with(&["--slots", "8"], |command| command);
    let lab = Lab::new();
    let rest = "phases: { fill: 0s, stabilize: 0s, measure: 100ms, drain: 10s }\n\
         sweeps: { s: { matrix: { endpoint: [a], model: [m], scenario: [short], batch_size: [2] } } }\n";
    lab.write("plan.yaml", &plan(&[("a", mock.port)], rest));
    // On a busy machine the run may be invalid; its rows are replaced by those that are judged
    // below.
    lab.run(&["run", "plan.yaml"]);
    let run = lab.only_run();
    let [short, long] = [200, 3_000].map(|gaps| {
        lengthen(&run, 400, gaps);
        let (most, metrics) = shown(&lab, &run.dir);
        assert_eq!(metrics["itl_n"], json!(400 * gaps));
        most
    });
    println!("80 000 gaps: {short} bytes; 1.2 million: {long}");
    // In memory, the rows would take 10 MB, and the same again for each copy.
    assert!(long < short + (6 << 20), "from {short} to {long} bytes");
}
