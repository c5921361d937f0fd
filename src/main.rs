//! The program `sweepline`: parse, call, print one error.

use std::process::ExitCode;

use clap::Parser;
use sweepline::cli;

fn main() -> ExitCode {
    cli::run(cli::Cli::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
