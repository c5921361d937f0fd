//! Do intervals, objectives and the word "kept up" keep what they promise? Queues that never were, thousands of times:
//!
//!     cargo bench --bench claims -- [--only PART] [--runs N] [--requests N] [--fewest N] [--threads N] [--check]
//!
//! Prints the tables of `docs/METRICS.md`, Dependence. Seeded: the same options print the same tables on any number of threads.
//! A cell stops after 1 000 runs, or where these would be more than 10⁸ requests after as many runs as that are, at least 200.
//! With `--check` it fails where a promise is broken by more than chance.
//!
//! What is noticed of runs that change under way prints `cargo test --lib steady_grid -- --nocapture`, what comparisons say of errors
//! `cargo test --release --lib error_tests -- --nocapture`.

mod args;
mod closed;
mod grid;
mod intervals;
mod methods;
mod objectives;
mod pool;
mod queue;
mod repeats;
mod saturation;
mod table;
mod truth;

use std::process::ExitCode;

use args::{Args, Part};
use grid::Looks;

fn main() -> ExitCode {
    let args = match Args::read(std::env::args().skip(1).collect()) {
        Ok(args) => args,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    println!("{} runs a cell, or {} requests and {} runs\n", args.runs, args.requests, args.fewest);
    let mut is_kept = true;
    let looks = Looks { intervals: args.wants(Part::Intervals), objectives: args.wants(Part::Objectives) };
    if looks.intervals || looks.objectives {
        let truths = grid::truths(&args);
        let cells = grid::cells(&args, &truths, looks);
        is_kept &= !looks.intervals || intervals::print(&cells);
        is_kept &= !looks.objectives || objectives::print(&cells);
    }
    if args.wants(Part::Methods) {
        methods::print(&args);
    }
    if args.wants(Part::Saturation) {
        is_kept &= saturation::print(&args);
    }
    if args.wants(Part::Closed) {
        is_kept &= closed::print(&args);
    }
    if args.wants(Part::Repeats) {
        is_kept &= repeats::print(&args);
    }
    if is_kept || !args.check { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
