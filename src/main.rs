//! The program `sweepline`: parse, call, print one error, exit.

use std::process::ExitCode;

use clap::Parser;
use sweepline::cli::{self, Cli};

fn main() -> ExitCode {
    let exit = cli::run(Cli::parse()).unwrap_or_else(|failure| failure.report());
    ExitCode::from(exit.code())
}
