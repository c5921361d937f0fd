//! `sweepline dataset profile` writes an anonymous profile of a log or trace, without texts, names or dates.

use std::path::PathBuf;

use clap::Args;

use super::source::{Source, each, tell_left_out};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::replace::{Overwrite, begins_with_key, cannot_write, replace};
use crate::dataset::profile::Profiler;

/// The arguments of `dataset profile`.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    source: Source,
    /// Minimum number of requests in each range of the profile; ranges with fewer requests are merged
    /// with their neighbors, or omitted and counted in the profile
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    k: u32,
    /// Write the profile to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
}

/// Makes the profile.
pub(crate) fn run(args: &ProfileArgs) -> Result<Exit, Failure> {
    let mut dataset = args.source.open()?;
    let mut profiler = Profiler::default();
    each(&mut dataset, |record| {
        profiler.add(&record);
        Ok(())
    })?;
    args.source.need_some(&dataset)?;
    let profile = profiler.finish(args.k).map_err(|few| {
        Failure::Usage(format!("{}: {few}; provide more requests, or use a smaller --k", args.source.file.display()))
    })?;
    match &args.output {
        None => output::json(&profile)?,
        Some(path) => {
            args.overwrite.check(path, "a profile", |path| begins_with_key(path, "sweepline_profile"))?;
            let text = serde_json::to_string_pretty(&profile).map_err(|error| Failure::Unexpected(error.into()))?;
            replace(path, |out| writeln!(out, "{text}")).map_err(|error| cannot_write(Some(path), &error))?;
        }
    }
    tell_left_out(&dataset);
    Ok(Exit::Done)
}
