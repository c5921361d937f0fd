//! Tests that measure: `cargo test --test measured`. Each decides by ratios within one run. A test that
//! fails while the machine was busy is listed as *could not be judged* (`lab::measured`).

mod calibrate;
mod claims;
mod connections;
mod exact;
mod forms;
mod frozen;
mod harness;
mod hostile_plans;
mod memory;
mod observe;
mod questions;
mod realserver;
mod silent;
mod slurm;
mod spoiled;
mod time_parts;
mod tokens;
mod verdicts;
mod whole;

fn main() -> std::process::ExitCode {
    lab::measured::main()
}
