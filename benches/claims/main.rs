//! Tests the promises of intervals, objectives and the label "kept up", on thousands of simulated queues:
//!
//!     cargo bench --bench claims -- [--only PART] [--runs N] [--requests N] [--fewest N] [--threads N] [--check]
//!
//! Prints the tables of `docs/METRICS.md`, Dependence. Seeded: the same options print the same tables on any
//! number of threads. A cell stops after 1 000 runs. If these would need more than 10⁸ requests, it stops
//! after 10⁸ requests, but not before 200 runs. With `--check`, the bench fails if a promise is broken by
//! more than chance.
//!
//! `cargo test --lib steady_grid -- --nocapture` prints the share of detected changes during runs, and
//! `cargo test --release --lib error_tests -- --nocapture` the results of comparisons of errors.

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
    println!("{} runs per cell, or {} requests and {} runs\n", args.runs, args.requests, args.fewest);
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
