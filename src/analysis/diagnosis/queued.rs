//! The servers' own queue figures, reported alongside symptoms that queueing may cause.

use crate::analysis::curve::Rung;

/// The queue confirms a symptom if the mean time in the queue has grown by at least the factor
/// `GROWN`, to at least `LEAST_MS` milliseconds.
const GROWN: f64 = 2.0;
const LEAST_MS: f64 = 1.0;

/// Returns a clause that compares the mean time in the servers' queues at two loads; `None` if a run at
/// either load lacks the figure.
pub(super) fn clause(light: &Rung, heavy: &Rung) -> Option<String> {
    let (before, after) = (queue_ms(light)?, queue_ms(heavy)?);
    let confirms = match after >= LEAST_MS && after >= GROWN * before {
        true => "which confirms that requests wait there",
        false => "which does not confirm that requests wait there",
    };
    Some(format!("; the mean time in the server's own queue goes from {before:.1} to {after:.1} ms, {confirms}"))
}

/// Returns the mean time in the queue, in milliseconds, averaged over the runs; `None` if a run lacks
/// it.
fn queue_ms(rung: &Rung) -> Option<f64> {
    let means = rung.runs.iter().map(|run| run.metrics.wholes.iter().find_map(|whole| whole.part_ms("queue")));
    let means: Vec<f64> = means.collect::<Option<_>>()?;
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}
