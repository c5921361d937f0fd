//! `sweepline dataset sample` writes a random sample of a file's records. A seed determines the sample.

use clap::Args;

use super::output::Output;
use super::source::{Source, each, tell_left_out};
use crate::cli::failure::{Exit, Failure};
use crate::cli::stderr::complain;
use crate::dataset::sample::sample;
use crate::units::Seed;

/// The arguments of `dataset sample`.
#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    source: Source,
    /// Number of records; all of them if the file has fewer
    #[arg(long)]
    n: u32,
    /// Random seed: the same seed and file give the same sample
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

/// Writes the sample in file order, so that times stay ordered. The file is read twice: once to count the
/// records, and once to copy the sample.
pub(crate) fn run(args: &SampleArgs) -> Result<Exit, Failure> {
    let mut counted = args.source.open()?;
    each(&mut counted, |_| Ok(()))?;
    args.source.need_some(&counted)?;
    let total = u32::try_from(counted.kept())
        .map_err(|_| Failure::Usage(format!("{}: more than 2^32 records", args.source.file.display())))?;
    let chosen = sample(total, args.n, Seed(args.seed));
    let mut wanted = chosen.iter().copied().peekable();
    let mut dataset = args.source.open()?;
    args.output.write(|write| {
        let mut at = 0;
        each(&mut dataset, |record| {
            let is_chosen = wanted.next_if_eq(&at).is_some();
            at += 1;
            if is_chosen { write(&record) } else { Ok(()) }
        })
    })?;
    tell_left_out(&dataset);
    let short = if total < args.n { ", all of the file" } else { "" };
    complain(&format!("{} of {total} records in {}{short}", chosen.len(), args.output.path.display()));
    Ok(Exit::Done)
}
