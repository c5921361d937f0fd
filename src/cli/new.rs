//! `sweepline new` writes a first plan, based on flags and on a running server's self-description.

use std::path::PathBuf;

use clap::Args;

use super::asked_server::{Asked, AskedServer};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{import, output, stderr};
use crate::import::{Fresh, FreshLoad, fresh};
use crate::units::Decimal;

/// Numbers of requests in flight if no load is given.
const SIZES: [u32; 4] = [1, 2, 4, 8];

/// The arguments of `new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    #[command(flatten)]
    server: AskedServer,
    /// Measure closed loops with these numbers of requests in flight [default without --qps: 1,2,4,8]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    batch_size: Vec<u32>,
    /// Measure open loops at these rates, in requests per second; with --batch-size, in a separate sweep
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    qps: Vec<Decimal>,
    /// The plan's name
    #[arg(long, value_name = "NAME", default_value = "first-look")]
    name: String,
    /// Write the plan to this file instead of stdout
    #[arg(short, long, value_name = "PLAN")]
    output: Option<PathBuf>,
    /// Overwrite the --output file
    #[arg(long, requires = "output")]
    force: bool,
}

/// Writes the plan.
pub(super) fn run(args: NewArgs) -> Result<Exit, Failure> {
    let Asked { model, longest, server } = args.server.ask()?;
    let wish = Fresh {
        name: args.name.clone(),
        model,
        longest,
        server,
        load: match (args.batch_size.as_slice(), args.qps.as_slice()) {
            ([], []) => FreshLoad::Closed(SIZES.to_vec()),
            (sizes, []) => FreshLoad::Closed(sizes.to_vec()),
            ([], rates) => FreshLoad::Open(rates.to_vec()),
            (sizes, rates) => FreshLoad::Both(sizes.to_vec(), rates.to_vec()),
        },
    };
    let text = fresh(&wish).map_err(|error| Failure::Usage(error.to_string()))?;
    match &args.output {
        Some(path) => {
            import::save(path, &text, args.force)?;
            stderr::complain(&format!("wrote {}; next: sweepline run {}", path.display(), path.display()));
        }
        None => output::print(&text)?,
    }
    Ok(Exit::Done)
}
