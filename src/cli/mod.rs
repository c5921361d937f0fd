//! The program: arguments, one file per command, failures as text and exit code.

use clap::{Parser, Subcommand};

pub mod mock;

/// Declarative, resumable sweeps of LLM-serving benchmarks.
#[derive(Debug, Parser)]
#[command(name = "sweepline", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// An OpenAI-compatible server with a timing model and faults
    Mock(Box<mock::MockArgs>),
}

/// Runs a command.
///
/// # Errors
/// What the command reports.
pub fn run(cli: Cli) -> anyhow::Result<std::process::ExitCode> {
    match cli.command {
        Command::Mock(args) => mock::run(*args),
    }
}
