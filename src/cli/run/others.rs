//! Runs that other workers are measuring, where results are shared.

use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::args::RunArgs;
use crate::cli::failure::Failure;
use crate::expand::{PlannedRun, RunId};
use crate::store::{Standing, Store, Writer};
use crate::sweep::Summary;
use crate::units::text::counted;

/// How long the first pause between two looks is; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(250);
/// How many bytes of rows are fetched to show a table.
const MOST_FETCHED: u64 = 64 * 1024 * 1024;
/// The longest pause between two looks.
const LONGEST: Duration = Duration::from_secs(5);

/// Waits until one of these runs is open again, or all of them are committed. No where the user ends the waiting.
pub(super) fn wait_for_others(
    args: &RunArgs,
    runs: &[RunId],
    (writer, stop): (&Writer, &watch::Receiver<bool>),
) -> Result<bool, Failure> {
    if runs.is_empty() {
        return Ok(true);
    }
    // What this worker took and did not commit is as much waited for by others.
    writer.release();
    args.tell(&[format!("{}: waiting for other workers", counted(runs.len(), "run"))]);
    let mut left: Vec<RunId> = runs.to_vec();
    let mut pause = FIRST;
    loop {
        let mut is_open = false;
        let mut taken = Vec::new();
        for id in left {
            match writer.look(&id.to_string())? {
                Standing::Committed => {}
                Standing::Taken => taken.push(id),
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

/// The runs that a table shows: all, unless the rows of those that others measured are a load to fetch; then those whose rows are here.
pub(super) fn cheap_to_show<'r>(store: &Store, runs: &[&'r PlannedRun]) -> Vec<&'r PlannedRun> {
    if store.remote().is_none() {
        return runs.to_vec();
    }
    let record = |run: &PlannedRun| store.run(&run.id.short()).ok().flatten()?.record;
    let absent = |run: &PlannedRun| record(run).map_or(0, |record| store.absent_bytes(&record));
    let absent: Vec<u64> = runs.iter().map(|run| absent(run)).collect();
    if absent.iter().sum::<u64>() <= MOST_FETCHED {
        return runs.to_vec();
    }
    runs.iter().copied().zip(absent).filter(|(_, absent)| *absent == 0).map(|(run, _)| run).collect()
}

/// That so many runs are not in the table.
pub(super) fn not_shown(runs: usize) -> Option<String> {
    let runs = (runs > 0).then(|| counted(runs, "run"))?;
    Some(format!(
        "\n{runs} of others not shown: their rows are not on this machine; `show`, `curves`, `report` and `export` fetch them"
    ))
}

/// What other workers did meanwhile, for the end of a sweep.
pub(super) fn told(summary: &Summary) -> Vec<String> {
    let shared = (summary.shared > 0)
        .then(|| format!("\n{} committed by other workers meanwhile", counted(summary.shared, "run")));
    let kept = (summary.kept > 0).then(|| {
        let runs = counted(summary.kept, "run");
        format!("\n{runs} not measured again: shared results are never changed; --results FOLDER measures anew")
    });
    shared.into_iter().chain(kept).collect()
}
