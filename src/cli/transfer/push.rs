//! `sweepline push` copies committed runs of a results folder to object storage.

use clap::Args;

use super::TransferArgs;
use super::document::{Document, LeftOut};
use crate::cli::failure::{Exit, Failure};
use crate::report::format::plain;
use crate::store::object::ObjectResults;
use crate::store::{Listed, Store};

/// The arguments of `push`.
#[derive(Debug, Args)]
pub struct PushArgs {
    #[command(flatten)]
    transfer: TransferArgs,
}

/// Sends the runs that are not on object storage yet, and prints the result for each run.
pub(crate) fn run(args: PushArgs) -> Result<Exit, Failure> {
    let args = args.transfer;
    args.folder.must_be_own("--results is the source of the runs")?;
    args.folder.must_exist()?;
    let objects = ObjectResults::open(&args.url)?;
    let plan = args.of_plan()?;
    let is_asked = |run: &Listed| plan.as_ref().is_none_or(|ids| ids.contains(&run.id));
    // Records are not kept in memory, because each is read again when its run is pushed.
    let without_record = |run: Listed| is_asked(&run).then_some(Listed { record: None, ..run });
    let listed = Store::open(&args.folder.results).survey(&without_record)?;
    let left_out: Vec<LeftOut> = listed.iter().filter_map(left_out).collect();
    let whole: Vec<&Listed> = listed.iter().filter(|run| run.state.problem().is_none()).collect();
    if !whole.is_empty() {
        objects.probe()?;
    }
    let pushed = objects.push(&whole)?;
    let runs = whole.iter().map(|run| run.id.clone()).zip(pushed).collect();
    let document = Document::pushed(objects.url(), runs, left_out);
    args.print(&document)?;
    Ok(if document.has_left_out() { Exit::Store } else { Exit::Done })
}

fn left_out(run: &Listed) -> Option<LeftOut> {
    Some(LeftOut { id: run.id.clone(), reason: plain(run.state.problem()?) })
}
