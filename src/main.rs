//! The program `sweepline`: parse, call, print one error, exit.

use std::process::ExitCode;

use clap::Parser;
use sweepline::cli::{self, Cli};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let colour = cli.colour();
    let exit = cli::run(cli).unwrap_or_else(|failure| failure.report(colour));
    ExitCode::from(exit.code())
}
