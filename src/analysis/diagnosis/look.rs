//! Common parts of all checks: evidence of runs, and the names of runs and loads in it.

use crate::analysis::curve::{Curve, Run, Rung};

use super::evidence::{Evidence, Evident, Finding};
use super::shown::{BY_CHANCE, Growth, Looked};

/// Looks for one symptom.
pub(super) type Look = fn(&Evident) -> Finding;

pub(super) fn evidence(runs: &[&Run], text: String) -> Evidence {
    Evidence { runs: runs.iter().map(|run| run.labels.run_id.clone()).collect(), text }
}

/// Returns the finding for an observed growth, with the runs and a sentence that describes the
/// observation.
pub(super) fn looked(growth: Growth, runs: &[&Run], text: impl FnOnce() -> String) -> Looked {
    match growth {
        Growth::Shown => Looked::Seen(evidence(runs, text())),
        Growth::NotShown => Looked::NotShown(format!("{} ({BY_CHANCE})", text())),
        Growth::No => Looked::Absent,
    }
}

/// Returns the beginning of a run's id, as commands accept it.
pub(super) fn short<'a>(run: &'a Run<'a>) -> &'a str {
    run.labels.run_id.get(..8).unwrap_or(&run.labels.run_id)
}

/// Returns the average number of the client's requests in flight over the window.
pub(super) fn in_flight(run: &Run) -> f64 {
    run.metrics.flow.achieved_concurrency.unwrap_or(f64::INFINITY)
}

/// Describes a load: `qps 40`.
pub(super) fn at(curve: &Curve, rung: &Rung) -> String {
    format!("{} {}", curve.axis.name(), rung.load)
}
