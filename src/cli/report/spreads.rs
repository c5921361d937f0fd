//! How latencies are spread over requests: of each curve the runs of its heaviest load, read one after another, so that the requests of
//! one run are in memory at a time.

use crate::analysis::curve::{Axis, Curve};
use crate::analysis::ecdf::Ecdf;
use crate::analysis::request::Metric;
use crate::cli::results::Readings;
use crate::report::html::Spread;
use crate::rows::Replay;
use crate::store::Store;

/// Most runs whose requests are read.
const MOST_RUNS: usize = 36;

/// Most repeats of one load.
const MOST_REPEATS: usize = 3;

/// The spreads of a plan's results.
pub(super) struct Spreads {
    /// What is drawn.
    pub(super) drawn: Vec<Spread>,
    /// Runs that could have been drawn and are not.
    pub(super) left: usize,
}

impl Spreads {
    /// Of the heaviest loads of all curves. A run that cannot be read is left out and named.
    pub(super) fn of(store: &Store, readings: &Readings, curves: &[Curve]) -> Spreads {
        let (mut drawn, mut left, mut read) = (Vec::new(), 0, 0);
        for (at, curve) in curves.iter().enumerate() {
            let Some(rung) = curve.rungs.iter().rfind(|rung| !rung.runs.is_empty()) else { continue };
            // The one request behind a start says nothing of latencies.
            let loaded = rung.runs.iter().filter(|run| run.metrics.start.is_none());
            for (number, run) in loaded.enumerate() {
                if number >= MOST_REPEATS || read >= MOST_RUNS {
                    left += 1;
                    continue;
                }
                read += 1;
                let id = &run.labels.run_id;
                let Some(result) = readings.runs.iter().find(|result| result.record.id == *id) else { continue };
                let Some(rows) = readings.left_out.take(store.read(&result.record)) else { continue };
                let of = |metric: Metric| Spread {
                    curve: at,
                    load: rung.load,
                    repeat: run.labels.repeat,
                    run: id.clone(),
                    metric: metric.key(),
                    ecdf: Ecdf::of(rows.rows(), &result.record.facts, metric),
                };
                drawn.extend(latencies(curve.axis).map(of));
            }
        }
        Spreads { drawn, left }
    }
}

/// What curves of this axis show: latencies of open loops are from the schedule.
fn latencies(axis: Axis) -> [Metric; 3] {
    match axis {
        Axis::Qps => [Metric::TtftFromSchedule, Metric::Tpot, Metric::E2eFromSchedule],
        Axis::BatchSize => [Metric::Ttft, Metric::Tpot, Metric::E2e],
    }
}
