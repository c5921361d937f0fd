//! Lists the loads at which the server was saturated, for the diagnosis.

use super::curves::{differ, title};
use super::format::digits;
use crate::analysis::curve::Curve;

/// A load at which the server was saturated.
pub(crate) struct SaturatedLoad {
    /// Full ids of the runs at this load.
    pub(crate) runs: Vec<String>,
    /// A sentence with the load and the figures.
    pub(crate) text: String,
}

/// Returns the loads at which the server was saturated, in the order of the curves.
pub(crate) fn saturated(curves: &[Curve]) -> Vec<SaturatedLoad> {
    let (models, sweeps) = differ(curves.iter().map(|curve| &curve.series));
    let mut all = Vec::new();
    for curve in curves {
        for rung in curve.rungs.iter().filter(|rung| rung.is_saturated()) {
            let name = title(&curve.series, models, sweeps);
            let place = format!("{name} at {} {}", curve.axis.name(), rung.load);
            let text = match rung.saturation() {
                Some(evidence) => {
                    let (completed, [low, high]) = evidence.completion_rate();
                    let [completed, low, high] = [completed, low, high].map(digits);
                    let came = digits(evidence.rate());
                    format!("{place}: {came} requests/s arrived, {completed} were completed (95 %: {low} to {high})")
                }
                None => place,
            };
            all.push(SaturatedLoad { runs: rung.runs.iter().map(|run| run.labels.run_id.clone()).collect(), text });
        }
    }
    all
}
