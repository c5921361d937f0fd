//! What sweepline's engine costs beside a bare reader, on the same mock, in one run: `cargo bench --bench ingest`.
//!
//! The **bare reader** (`bare`) is hyper's connection API on one thread, each connection polled in the task of the request
//! that uses it; it reads every byte of an answer and stores nothing. It is about the least that reading these streams
//! through an HTTP library can cost. **sweepline** is the engine as it runs: requests made, events parsed and stamped,
//! rows journalled, sealed into Parquet, checked and committed. Each measurement is a child process of its own and its
//! CPU is user + system of that whole process, start to end. Rounds alternate, figures are medians, the ratio is the
//! judge: a machine that others use too moves both.
//!
//! `cargo bench --bench ingest -- [PART…] [--rounds N] [--quick] [--check FACTOR]`; the parts are in `args`.

mod args;
mod bare;
mod cases;
mod child;
mod engine;
mod log;
mod mock;
mod report;
mod stats;

use args::{Args, Part};
use report::Report;

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == child::FLAG) {
        return child::work(&words.pop().expect("a child is told what to do"));
    }
    let args = match Args::read(words) {
        Ok(args) => args,
        Err(wrong) => {
            eprintln!("{wrong}");
            std::process::exit(2);
        }
    };
    let mut report = Report::new(args.check);
    report.say(&format!("{} rounds each, medians, the range behind them", args.rounds));
    for part in &args.parts {
        run(*part, &args, &mut report);
    }
    if report.failed() {
        std::process::exit(1);
    }
}

fn run(part: Part, args: &Args, report: &mut Report) {
    match part {
        Part::Streams => cases::streams::coalesced(args, report),
        Part::PerEvent => cases::streams::per_event(args, report),
        Part::OneToken => cases::streams::one_token(args, report),
        Part::Open => cases::open::open(args, report),
        Part::Ttft => cases::ttft::ttft(args, report),
        Part::Memory => cases::memory::memory(args, report),
        Part::Steps => cases::steps::steps(args, report),
    }
}
