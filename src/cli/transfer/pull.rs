//! `sweepline pull` copies runs from object storage to a results folder, where `run` treats them as
//! local.

use clap::Args;

use super::TransferArgs;
use super::document::Document;
use crate::cli::failure::{Exit, Failure};
use crate::store::Store;
use crate::store::object::ObjectResults;

/// The arguments of `pull`.
#[derive(Debug, Args)]
pub struct PullArgs {
    #[command(flatten)]
    transfer: TransferArgs,
}

/// Fetches the runs that are not here yet, and prints the result for each.
pub(crate) fn run(args: PullArgs) -> Result<Exit, Failure> {
    let args = args.transfer;
    args.folder.must_be_own("--results is the destination of the fetched runs")?;
    let objects = ObjectResults::open(&args.url)?;
    let plan = args.of_plan()?;
    let mut ids = objects.runs()?;
    ids.retain(|id| plan.as_ref().is_none_or(|plan| plan.contains(id)));
    let pulled = match ids.is_empty() {
        true => Vec::new(),
        false => objects.pull(&Store::lock(&args.folder.results)?, &ids)?,
    };
    args.print(&Document::pulled(objects.url(), ids.into_iter().zip(pulled).collect()))?;
    Ok(Exit::Done)
}
