//! `sweepline dataset …`: data sets and traces: what they hold, one form for all, samples, anonymous profiles.

pub(super) mod convert;
pub(super) mod inspect;
pub(super) mod output;
pub(super) mod profile;
pub(super) mod sample;
pub(super) mod source;

use clap::{Args, Subcommand};

use crate::cli::failure::{Exit, Failure};

/// The arguments of `dataset`.
#[derive(Debug, Args)]
pub struct DatasetArgs {
    #[command(subcommand)]
    command: Command,
}

/// What is done with a data set.
#[derive(Debug, Subcommand)]
enum Command {
    /// Say what a data set or trace is, what it holds, and what was left out
    Inspect(inspect::InspectArgs),
    /// Write a data set or trace in sweepline's own form
    Convert(convert::ConvertArgs),
    /// Write a sample, drawn by seed without replacement
    Sample(sample::SampleArgs),
    /// Make an anonymous profile of a log or trace: no text, no names, no dates
    Profile(profile::ProfileArgs),
}

/// Does it.
pub(super) fn run(args: DatasetArgs) -> Result<Exit, Failure> {
    match args.command {
        Command::Inspect(args) => inspect::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Sample(args) => sample::run(&args),
        Command::Profile(args) => profile::run(&args),
    }
}
