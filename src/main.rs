//! The program `sweepline`: parse, call, print one error, exit.

use std::process::ExitCode;

use sweepline::cli;

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(refusal) => return cli::refuse(&refusal),
    };
    let colour = cli.colour();
    let exit = cli::run(cli).unwrap_or_else(|failure| failure.report(colour));
    ExitCode::from(exit.code())
}
