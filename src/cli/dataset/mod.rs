//! `sweepline dataset …` inspects, converts and samples data sets and traces, and makes anonymous
//! profiles of them.

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

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Show the format, the contents and the skipped entries of a data set or trace
    Inspect(inspect::InspectArgs),
    /// Write a data set or trace in sweepline's own format
    Convert(convert::ConvertArgs),
    /// Write a reproducible random sample of the records, drawn without replacement
    Sample(sample::SampleArgs),
    /// Make an anonymous profile of a log or trace: no text, no names, no dates
    Profile(profile::ProfileArgs),
}

/// Runs the command.
pub(super) fn run(args: DatasetArgs) -> Result<Exit, Failure> {
    match args.command {
        Command::Inspect(args) => inspect::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Sample(args) => sample::run(&args),
        Command::Profile(args) => profile::run(&args),
    }
}
