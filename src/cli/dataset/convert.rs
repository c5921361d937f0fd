//! `sweepline dataset convert` writes any readable file in sweepline's own format.

use clap::Args;

use super::output::Output;
use super::source::{Source, each, tell_left_out};
use crate::cli::failure::{Exit, Failure};
use crate::cli::stderr::complain;

/// The arguments of `dataset convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    output: Output,
}

/// Writes the file.
pub(crate) fn run(args: &ConvertArgs) -> Result<Exit, Failure> {
    let mut dataset = args.source.open()?;
    args.output.write(|write| {
        each(&mut dataset, |record| write(&record))?;
        args.source.need_some(&dataset)
    })?;
    tell_left_out(&dataset);
    complain(&format!("{} records of {} in {}", dataset.kept(), dataset.format(), args.output.path.display()));
    Ok(Exit::Done)
}
