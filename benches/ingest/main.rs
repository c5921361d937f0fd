//! The cost of sweepline's engine compared with a bare reader, on the same mock, in one run: `cargo bench
//! --bench ingest`.
//!
//! The **bare reader** (`bare`) is hyper's connection API on one thread, with each connection polled in the
//! task of the request that uses it. It reads every byte of a response and stores nothing, which is about the
//! minimum cost of reading these streams through an HTTP library. **sweepline** is the engine as it runs:
//! requests generated, events parsed and timestamped, rows journalled, sealed into Parquet, checked and
//! committed. Each measurement is a separate child process, and its CPU is user + system time of that whole
//! process, start to end. Rounds alternate, and figures are medians. Only the ratio is judged, because other
//! users of the machine affect both sides.
//!
//! `cargo bench --bench ingest -- [PART…] [--rounds N] [--quick] [--check FACTOR]`; the parts are in
//! `args`. `cargo test --bench ingest` runs it as a test (`as_test`).

mod args;
mod as_test;
mod bare;
mod cases;
mod child;
mod engine;
mod holding;
mod log;
mod mock;
mod report;
mod seen;
mod stats;

use args::Args;
use report::Report;

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == child::FLAG) {
        return child::work(&words.pop().expect("a child gets its task"));
    }
    // cargo passes `--bench` to a benchmark and nothing to a test.
    let is_test = words.iter().all(|word| word != "--bench");
    let read = if is_test { Ok(as_test::read(&words)) } else { Args::read(words).map(Some) };
    match read {
        Ok(Some(args)) if !measure(&args) => std::process::exit(1),
        Ok(_) => {}
        Err(wrong) => {
            eprintln!("{wrong}");
            std::process::exit(2);
        }
    }
}

/// Runs the requested parts. Returns false if a limit was exceeded by more than the allowed factor.
fn measure(args: &Args) -> bool {
    let mut report = Report::new(args.check);
    report.say(&format!("{} rounds each, medians, the range behind them", args.rounds));
    for part in &args.parts {
        cases::run(*part, args, &mut report);
    }
    report.holds()
}
