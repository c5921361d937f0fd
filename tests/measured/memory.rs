//! Tests that the memory of the process is constant, however long the run is, while tokens arrive at a high
//! rate.

use std::time::{Duration, Instant};

use sweepline::rows::read_samples;

use lab::mock::Mock;
use lab::plans::plan;
use lab::{Lab, wait_for};

/// Growth after the warm-up that counts as allocator noise; it is less than the rows of half a
/// minute.
const MOST_GROWTH: u64 = 24 << 20;

fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())?;
    Some(kib * 1024)
}

fn memory_is_flat_under_many_tokens() {
    let mock = Mock::start_with(&["--slots", "64"], |command| command);
    let lab = Lab::measured_time();
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

lab::measured_tests![memory_is_flat_under_many_tokens];
