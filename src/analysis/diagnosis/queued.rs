//! What servers say of their own queues, beside a symptom that may come from waiting.

use crate::analysis::curve::Rung;

/// From this factor on a queue has grown, if it takes so many milliseconds then. Chosen, not measured.
const GROWN: f64 = 2.0;
const LEAST_MS: f64 = 1.0;

/// A clause on the mean queue of the servers at two loads; none where a run of one of them does not know it.
pub(super) fn clause(light: &Rung, heavy: &Rung) -> Option<String> {
    let (before, after) = (queue_ms(light)?, queue_ms(heavy)?);
    let confirms = match after >= LEAST_MS && after >= GROWN * before {
        true => "which confirms that requests wait there",
        false => "which does not confirm that requests wait there",
    };
    Some(format!("; the mean time in the server's own queue goes from {before:.1} to {after:.1} ms, {confirms}"))
}

/// The mean of the runs' means.
fn queue_ms(rung: &Rung) -> Option<f64> {
    let means = rung.runs.iter().map(|run| run.metrics.wholes.iter().find_map(|whole| whole.part_ms("queue")));
    let means: Vec<f64> = means.collect::<Option<_>>()?;
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}
