//! Recorded TTFT compared with the TTFT of the mock's log, request by request: the difference is the
//! generator's error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::args::Args;
use crate::log::{Lines, Log};
use crate::mock::Mock;
use crate::report::{Bound, Report, micros};
use crate::stats::{Rounds, quantile};

use super::plan;
use super::run::Run;

/// The error of one run, in microseconds.
struct Error {
    mean: f64,
    p99: f64,
    most: f64,
}

/// Runs all four loads: 64 streams, 256 started together, and both next to a busy loop on every core.
pub fn ttft(args: &Args, report: &mut Report) {
    report.head("ttft: (first token − sent) − (first write − arrival in the mock's log); TTFT 50 ms, ITL 10 ms");
    for (streams, hogs) in [(64, false), (256, false), (64, true), (256, true)] {
        let busy = hogs.then(Hogs::start);
        let errors = errors(args, streams);
        drop(busy);
        let rounds = |of: fn(&Error) -> f64| Rounds::of(errors.iter().map(of)).median;
        let what = format!("{streams} streams{}", if hogs { ", a busy loop on every core" } else { "" });
        report.figure(&format!("{what}: mean"), rounds(|e| e.mean), micros, Some(Bound::Most(50.0)));
        report.figure(&format!("{what}: p99"), rounds(|e| e.p99), micros, Some(Bound::Most(100.0)));
        report.figure(&format!("{what}: max"), rounds(|e| e.most), micros, None);
    }
}

fn errors(args: &Args, streams: u32) -> Vec<Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("mock.jsonl");
    let slots = streams.to_string();
    let path = log.to_str().expect("a plain path");
    let mock = Mock::start(&["--ttft", "50ms", "--itl", "10ms", "--slots", &slots, "--log", path]);
    let window = args.window(Duration::from_secs(6)).as_millis();
    let phases = format!("fill: 0s, stabilize: 0s, measure: {window}ms, drain: 10s");
    let plan = plan::plan(mock.port, 32, &format!("batch_size: [{streams}]"), &phases);
    let runs: Vec<Run> =
        (0..args.rounds).map(|round| Run::make(mock.port, plan.clone(), &format!("r{round}"))).collect();
    mock.end();
    let log = Log::read(&log);
    runs.iter().enumerate().map(|(round, run)| error(run, &log.of(&format!("r{round}")))).collect()
}

/// Returns the error over the complete responses of one run.
fn error(run: &Run, log: &Lines) -> Error {
    let rows = run.rows();
    let errors = rows.iter().filter(|row| row.outcome.is_ok()).map(|row| {
        let line = log[&row.request];
        let theirs = line.first_write_ns.zip(line.arrival_ns).map(|(write, arrival)| write - arrival);
        let ours = row.first_token_ns.zip(row.sent_ns).map(|(token, sent)| token - sent);
        let (ours, theirs) = ours.zip(theirs).expect("a complete response has all instants on both sides");
        (ours as f64 - theirs as f64) / 1e3
    });
    let errors: Vec<f64> = errors.collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let mut sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    Error { mean: mean.abs(), p99: quantile(&sizes, 0.99), most: sizes[sizes.len() - 1] }
}

/// A busy loop on every core, as threads of this process, so that they cannot outlive it.
struct Hogs(Arc<AtomicBool>);

impl Hogs {
    fn start() -> Hogs {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Hogs(stop)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
