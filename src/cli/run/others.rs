//! Handles the runs that other workers measure, if results are shared.

use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::args::RunArgs;
use crate::cli::failure::Failure;
use crate::cli::shared;
use crate::cli::workspace::Workspace;
use crate::expand::{PlannedRun, RunId};
use crate::store::{Standing, Store, Writer};
use crate::sweep::Summary;
use crate::units::text::{counted, quoted};

/// First pause between two polls; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(250);
/// Maximum number of bytes of rows that are fetched to show a table.
const MOST_FETCHED: u64 = 64 * 1024 * 1024;
/// Longest pause between two polls.
const LONGEST: Duration = Duration::from_secs(5);

/// Waits until any of these runs is open again, or all of them are committed. Returns `false` if
/// the user interrupts the wait.
pub(super) fn wait_for_others(
    args: &RunArgs,
    runs: &[RunId],
    workspace: &Workspace,
    (writer, stop): (&Writer, &watch::Receiver<bool>),
) -> Result<bool, Failure> {
    if runs.is_empty() {
        return Ok(true);
    }
    // Releases runs that this worker claimed but did not commit, because other workers are waiting
    // for them.
    writer.release();
    args.tell(&[format!("{}: waiting for other workers", counted(runs.len(), "run"))]);
    let server = |id: &RunId| {
        let run = workspace.expansion.runs.iter().find(|run| run.id == *id)?;
        workspace.plan().endpoints.get(&run.spec.endpoint.name)?.shared_server()
    };
    let mut left: Vec<(RunId, Option<String>)> = runs.iter().map(|id| (*id, server(id))).collect();
    let mut pause = FIRST;
    loop {
        let mut is_open = false;
        let mut taken = Vec::new();
        for (id, server) in left {
            match writer.look(&id.to_string(), server.as_deref())? {
                Standing::Committed => {}
                Standing::Taken => taken.push((id, server)),
                Standing::Open => is_open = true,
            }
        }
        if is_open || taken.is_empty() {
            return Ok(true);
        }
        left = taken;
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if *stop.borrow() {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(50));
        }
        pause = LONGEST.min(pause * 2);
    }
}

/// Returns the runs that a table shows: all of them, or only those with local rows if fetching the
/// other rows would be a large download.
pub(super) fn cheap_to_show<'r>(store: &Store, runs: &[&'r PlannedRun]) -> Vec<&'r PlannedRun> {
    if store.remote().is_none() {
        return runs.to_vec();
    }
    let lacking: Vec<bool> = runs.iter().map(|run| store.lacks_rows(&run.id.short())).collect();
    let mut absent = runs.iter().zip(&lacking).filter(|(_, lacks)| **lacks).map(|(run, _)| {
        let record = store.run(&run.id.short()).ok().flatten().and_then(|listed| listed.record);
        record.map_or(0, |record| store.absent_bytes(&record))
    });
    // Reads only as many records as are needed to exceed the limit.
    let is_much = |sum: &mut u64, bytes: u64| {
        *sum += bytes;
        Some(*sum > MOST_FETCHED)
    };
    if !absent.by_ref().scan(0, is_much).any(|is_much| is_much) {
        return runs.to_vec();
    }
    runs.iter().copied().zip(lacking).filter(|(_, lacks)| !lacks).map(|(run, _)| run).collect()
}

/// Returns a note on the number of runs missing from the table.
pub(super) fn not_shown(runs: usize) -> Option<String> {
    let runs = (runs > 0).then(|| counted(runs, "run"))?;
    Some(format!(
        "\n{runs} of other workers not shown: their rows are not on this machine; `show`, `curves`, `report` \
         and `export` fetch them"
    ))
}

/// Returns the error that runs of the plan, which this machine has as shared, are missing in the shared results, because
/// a user removed them there; `None` if there are none. They are never sent again unasked.
pub(super) fn vanished(args: &RunArgs, workspace: &Workspace) -> Result<Option<String>, Failure> {
    if workspace.store.remote().is_none() {
        return Ok(None);
    }
    let ids = workspace.expansion.possible().map(|run| run.id.short()).collect();
    let vanished = workspace.store.vanished(Some(&ids))?;
    let plan = format!(" --plan {}{}", quoted(&args.plan.to_string_lossy()), args.changes.typed(quoted));
    Ok((!vanished.is_empty()).then(|| format!("error: {}", shared::vanished(&workspace.store, &vanished, &plan))))
}

/// Returns a note on the runs of other workers, to be shown at the end of a sweep.
pub(super) fn told(summary: &Summary) -> Vec<String> {
    let shared = (summary.shared > 0)
        .then(|| format!("\n{} committed by other workers in the meantime", counted(summary.shared, "run")));
    let kept = (summary.kept > 0).then(|| {
        let runs = counted(summary.kept, "run");
        format!(
            "\n{runs} not measured again: shared results never change; pass --results FOLDER to measure \
             into a separate folder"
        )
    });
    shared.into_iter().chain(kept).collect()
}
