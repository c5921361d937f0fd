//! The load from which tokens are cheap enough. The cost of a million tokens falls as the load rises,
//! and is computed from a count that has no sampling error. There is therefore no fit and no confirmation:
//! the limit is bracketed, and the bracket is narrowed to the resolution.

use super::grid::Grid;
use super::question::{Probe, Question};
use crate::analysis::slo::Answer;

/// Minimum factor by which the load is increased while every measured load is too expensive. Tokens of a
/// saturated server get no cheaper, so the steps must not become small.
const UP: f64 = 1.5;
/// Number of runs after which the bracket is halved instead of being split where the costs suggest the
/// limit.
const AIMED: usize = 6;
/// Maximum number of runs with unknown cost before the search ends.
const UNKNOWN: usize = 2;

/// The next step in the search for the lowest load from which tokens are cheap enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CheapestNext {
    /// An ordinary run.
    Probe {
        /// The load of the run.
        load: f64,
        /// Index among the runs of this load, from 0.
        repeat: u32,
    },
    /// Nothing, because the search is over.
    Ended(Cheapest),
}

/// The result: the load from which tokens are cheap enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cheapest {
    /// Tokens are cheap enough from this load on.
    From {
        /// The lowest load that is cheap enough.
        load: f64,
        /// The highest load below `load` that is too expensive; `None` if the load found is the
        /// lightest of the range.
        dearer: Option<f64>,
    },
    /// Tokens are too expensive even at the heaviest load of the range.
    Never {
        /// The heaviest load.
        load: f64,
    },
    /// The cost is unknown because no token count is available.
    Unknown,
}

/// Returns what to do next, given all runs so far. A run that is cheap enough has the answer "holds".
/// The pressure of a run is its cost divided by the limit.
pub fn cheapest(question: &Question, probes: &[Probe]) -> CheapestNext {
    let grid = Grid::of(question);
    let priced = priced(probes);
    let own = probes.iter().filter(|probe| probe.own);
    if own.clone().filter(|probe| probe.answer.is_none()).count() >= UNKNOWN {
        return CheapestNext::Ended(Cheapest::Unknown);
    }
    let probe = |load: f64| {
        let repeats = probes.iter().filter(|probe| probe.load == load && !probe.confirms).count();
        CheapestNext::Probe { load, repeat: repeats as u32 }
    };
    let cheap = priced.iter().find(|(_, cost)| *cost <= 1.0).copied();
    let dear = priced.iter().rev().find(|(load, _)| cheap.is_none_or(|(cheap, _)| *load < cheap)).copied();
    match (dear, cheap) {
        (None, None) => probe(grid.first()),
        (Some((load, _)), None) if load >= grid.last() => CheapestNext::Ended(Cheapest::Never { load }),
        (Some((load, cost)), None) => probe(grid.times(load, cost.max(UP))),
        (None, Some((load, _))) if load <= grid.first() => CheapestNext::Ended(Cheapest::From { load, dearer: None }),
        (None, Some((load, cost))) => {
            probe(grid.at_or_below(load * cost).min(grid.below(load).unwrap_or(grid.first())))
        }
        (Some((dearer, of_dearer)), Some((load, of_load))) => {
            let (next, before) = (grid.above(dearer).unwrap_or(load), grid.below(load).unwrap_or(dearer));
            if next >= load || load / dearer <= 1.0 + question.within {
                return CheapestNext::Ended(Cheapest::From { load, dearer: Some(dearer) });
            }
            // As long as the server keeps up, cost times load is constant, which indicates the load at which
            // the cost equals the limit.
            let aim = ((dearer * of_dearer) * (load * of_load)).sqrt();
            let middle = if own.count() < AIMED { aim } else { (dearer * load).sqrt() };
            probe(grid.nearest(middle.clamp(next, before)).clamp(next, before))
        }
    }
}

/// Returns the maximum number of runs of a search for the lowest load that is cheap enough.
pub fn most_cheapest(question: &Question) -> usize {
    let grid = Grid::of(question);
    let up = ((grid.last() / grid.first()).ln() / UP.ln()).ceil().max(0.0) as usize + 1;
    let halved = (grid.loads().len().max(1) as f64).log2().ceil() as usize + 1;
    up + AIMED + halved + UNKNOWN
}

/// Returns the loads with known cost, in rising order, each with its cost relative to the limit,
/// averaged over the runs at this load.
fn priced(probes: &[Probe]) -> Vec<(f64, f64)> {
    let said = |probe: &&Probe| probe.answer.is_some_and(|answer| answer != Answer::Undecided);
    let mut known: Vec<(f64, f64)> =
        probes.iter().filter(said).filter_map(|probe| Some((probe.load, probe.pressure?))).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = |runs: &[(f64, f64)]| (runs[0].0, runs.iter().map(|(_, cost)| cost).sum::<f64>() / runs.len() as f64);
    known.chunk_by(|a, b| a.0 == b.0).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question { from: 1.0, to: 200.0, within: 0.05, whole: false, confirm: false }
    }

    /// Runs a search on a server whose cost relative to the limit is `cost(load)`.
    fn search(cost: impl Fn(f64) -> Option<f64>) -> (Vec<Probe>, Cheapest) {
        let mut probes = Vec::new();
        loop {
            let load = match cheapest(&question(), &probes) {
                CheapestNext::Probe { load, .. } => load,
                CheapestNext::Ended(cheapest) => return (probes, cheapest),
            };
            let answer = cost(load).map(|cost| if cost <= 1.0 { Answer::Holds } else { Answer::Misses });
            probes.push(Probe {
                load,
                confirms: false,
                own: true,
                answer,
                pressure: cost(load),
                requests: 1_000,
                short: None,
                together: answer,
                grows: None,
            });
            assert!(probes.len() <= most_cheapest(&question()), "{probes:?}");
        }
    }

    #[test]
    fn the_load_is_found_to_the_resolution_in_few_runs() {
        for limit in [1.7, 12.0, 33.3, 150.0] {
            let (probes, found) = search(|load| Some(limit / load));
            let Cheapest::From { load, dearer: Some(dearer) } = found else { panic!("{found:?}") };
            assert!(dearer < limit && load >= limit && load <= dearer * 1.0501, "{dearer} to {load} for {limit}");
            assert!(probes.len() <= 8, "{probes:?}");
        }
    }

    #[test]
    fn a_saturated_server_gets_no_cheaper() {
        let (probes, found) = search(|load| Some(1.2 * (50.0 / load).max(1.0)));
        assert_eq!(found, Cheapest::Never { load: 200.0 });
        assert!(probes.len() <= 14, "{probes:?}");
        // Throughput falls beyond the knee. A higher load that is expensive again is not part of the
        // result.
        let (_, found) = search(|load| Some(0.8 * (50.0 / load).max((load / 50.0).sqrt())));
        let Cheapest::From { load, dearer: Some(dearer) } = found else { panic!("{found:?}") };
        assert!(dearer < 40.0 && (40.0..=42.0).contains(&load), "{dearer} to {load}");
    }

    #[test]
    fn a_range_that_is_cheap_throughout_and_a_cost_that_nobody_knows_are_said() {
        assert_eq!(search(|_| Some(0.4)).1, Cheapest::From { load: 1.0, dearer: None });
        assert_eq!(search(|_| None).1, Cheapest::Unknown);
    }
}
