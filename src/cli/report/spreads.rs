//! Distributions of latencies over requests: for each curve, the runs at the highest load that meets the
//! objective, at the first load that misses it, and at the heaviest load. Runs are read one after
//! another, so that only one run's requests are in memory.

use strum::IntoEnumIterator;

use crate::analysis::curve::{Axis, Bracket, Curve, Rung};
use crate::analysis::ecdf::{Ecdf, Observed};
use crate::analysis::request::Metric;
use crate::cli::results::Readings;
use crate::report::html::{Chosen, RepeatSpread, Spread};
use crate::rows::Replay;
use crate::store::Store;

/// Maximum number of runs whose requests are read.
const MOST_RUNS: usize = 36;

/// Maximum number of repeats of one load whose requests are read.
const MOST_REPEATS: usize = 3;

/// The latency distributions of a plan's results.
pub(super) struct Spreads {
    /// The distributions that are drawn.
    pub(super) drawn: Vec<Spread>,
    /// Number of runs that could have been drawn but are not.
    pub(super) left: usize,
}

impl Spreads {
    /// Reads the runs of the chosen loads of all curves. Loads that meet the objective are read first,
    /// because they are the most important and the number of runs is limited. A run that cannot be read is
    /// excluded and reported.
    pub(super) fn of(store: &Store, readings: &Readings, curves: &[Curve]) -> Spreads {
        let (mut drawn, mut left, mut room) = (Vec::new(), 0, MOST_RUNS);
        for chosen in Chosen::iter() {
            for (at, curve) in curves.iter().enumerate() {
                let Some(rung) = rung_of(curve, chosen) else { continue };
                // A run that measures a server start has a single request, which contains no information
                // about latencies.
                let loaded: Vec<_> = rung.runs.iter().filter(|run| run.metrics.start.is_none()).collect();
                let count = loaded.len().min(MOST_REPEATS).min(room);
                left += loaded.len() - count;
                room -= count;
                let mut load = Load::new(curve.axis);
                for run in &loaded[..count] {
                    let id = &run.labels.run_id;
                    let Some(result) = readings.runs.iter().find(|result| result.record.id == *id) else { continue };
                    let Some(rows) = readings.left_out.take(store.read(&result.record)) else { continue };
                    let of = |metric| Observed::of(rows.rows(), &result.record.facts, metric);
                    load.add(run.labels.repeat, id, of);
                }
                drawn.extend(load.spreads((at, rung.load), chosen));
            }
        }
        Spreads { drawn, left }
    }
}

/// Returns the load of a curve that `chosen` describes: the highest that meets the objective, the first
/// that misses it, or the heaviest. `None` if no such load has runs that count, or if the heaviest load is
/// also the highest that meets the objective or the first that misses it.
fn rung_of<'c, 'a>(curve: &'c Curve<'a>, chosen: Chosen) -> Option<&'c Rung<'a>> {
    let Bracket { holds, misses, .. } = curve.bracket().unwrap_or_default();
    let with_runs = || curve.rungs.iter().filter(|rung| !rung.runs.is_empty());
    let at = |load: Option<f64>| with_runs().find(|rung| Some(rung.load) == load);
    match chosen {
        Chosen::Holds => at(holds),
        Chosen::Misses => at(misses),
        Chosen::Heaviest => with_runs().next_back().filter(|rung| ![holds, misses].contains(&Some(rung.load))),
    }
}

/// The latencies of one load, run by run.
struct Load {
    metrics: [Metric; 3],
    repeats: [Vec<RepeatSpread>; 3],
    together: [Observed; 3],
}

impl Load {
    fn new(axis: Axis) -> Load {
        Load { metrics: latencies(axis), repeats: Default::default(), together: Default::default() }
    }

    fn add(&mut self, repeat: u32, run: &str, of: impl Fn(Metric) -> Observed) {
        for (at, metric) in self.metrics.into_iter().enumerate() {
            let observed = of(metric);
            self.together[at].add(&observed);
            self.repeats[at].push(RepeatSpread { repeat, run: run.to_owned(), ecdf: observed.into() });
        }
    }

    fn spreads(self, (curve, load): (usize, f64), chosen: Chosen) -> impl Iterator<Item = Spread> {
        let all = self.metrics.into_iter().zip(self.repeats).zip(self.together);
        let of = move |((metric, repeats), together): ((Metric, Vec<RepeatSpread>), Observed)| {
            let (metric, together) = (metric.key(), Ecdf::from(together));
            Spread { curve, load, chosen, metric, repeats, together }
        };
        all.map(of)
    }
}

/// Returns the latency metrics of curves on this axis. For open loops, TTFT and E2E latency are measured from the
/// scheduled time.
fn latencies(axis: Axis) -> [Metric; 3] {
    match axis {
        Axis::Qps => [Metric::TtftFromSchedule, Metric::Tpot, Metric::E2eFromSchedule],
        Axis::BatchSize => [Metric::Ttft, Metric::Tpot, Metric::E2e],
    }
}
