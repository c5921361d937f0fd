//! Memory of the engine's process: its peak, including sealing, and whether it grows during the load.

use std::time::Duration;

use sweepline::rows::{Table, read_samples};

use crate::args::Args;
use crate::holding;
use crate::mock::Mock;
use crate::report::{Bound, Report, megabytes};

use super::plan::plan;
use super::run::Run;

/// Measures 64 streams at full speed, and 10 000 in flight.
pub fn memory(args: &Args, report: &mut Report) {
    report.head("memory: peak of the whole process, and resident bytes over the run");
    let window = args.window(Duration::from_secs(20)).as_millis();
    let fast = ["--ttft", "0s", "--itl", "0s", "--slots", "64"];
    let phases = format!("fill: 0s, stabilize: 0s, measure: {window}ms, drain: 10s");
    one(report, 64, &fast, 128, &phases, 100e6);
    // A token every 200 ms for each of the streams: 50 000 events per second.
    let slow = ["--ttft", "1s", "--itl", "200ms", "--slots", "10000"];
    let phases = format!("fill: 4s, stabilize: 0s, measure: {window}ms, drain: 30s");
    one(report, 10_000, &slow, 32, &phases, 600e6);
    held_open(args, report);
}

/// Measures about 1 000 connections that the server holds open after `[DONE]`: 500 requests/s, each read on for two
/// seconds. Compares with the same requests to a server that ends its responses.
fn held_open(args: &Args, report: &mut Report) {
    let window = args.window(Duration::from_secs(20)).as_millis();
    let phases = format!("fill: 0s, stabilize: 4s, measure: {window}ms, drain: 10s");
    let [ended, held] = [false, true].map(|holds| {
        let port = holding::start(holds);
        Run::make(port, plan(port, holding::TOKENS, "qps: [500]", &phases), "bench")
    });
    let most = held.done.seen.held_open;
    assert!(most >= 900, "only {most} streams were held open");
    let peak = held.done.seen.peak_rss as f64;
    report.figure(&format!("{most} streams held open at once: peak"), peak, megabytes, Some(Bound::Most(100e6)));
    let peak = ended.done.seen.peak_rss as f64;
    report.figure("the same requests, no stream held open: peak", peak, megabytes, None);
}

fn one(report: &mut Report, streams: u32, flags: &[&str], tokens: u32, phases: &str, most: f64) {
    let mock = Mock::start(flags);
    let load = format!("batch_size: [{streams}]");
    let run = Run::make(mock.port, plan(mock.port, tokens, &load, phases), "bench");
    mock.end();
    let samples = read_samples(&run.dir.join(Table::Samples.file())).expect("sealed samples");
    let values = |name: &str| -> Vec<f64> { samples.iter().filter(|s| s.name == name).map(|s| s.value).collect() };
    let in_flight = values("in_flight").into_iter().fold(0.0, f64::max);
    assert!(in_flight >= f64::from(streams), "only {in_flight} streams were in flight");
    let resident = values("resident_bytes");
    // All streams are in flight and buffers are allocated after the first third.
    let (warm, rest) = resident.split_at(resident.len() / 3 + 1);
    let warm = warm.last().copied().unwrap_or(0.0);
    let last = rest.last().copied().unwrap_or(warm);
    report.figure(
        &format!("{streams} streams: peak"),
        run.done.seen.peak_rss as f64,
        megabytes,
        Some(Bound::Most(most)),
    );
    report.figure(&format!("{streams} streams: resident after the first third"), warm, megabytes, None);
    report.figure(&format!("{streams} streams: resident at the end of the load"), last, megabytes, None);
}
