//! From which load on tokens are cheap enough. What a million of them costs falls as the load rises, and follows from one count without a
//! sampling error, so nothing is fitted and nothing confirmed: the limit is bracketed, and the bracket is narrowed to the resolution.

use super::grid::Grid;
use super::question::{Probe, Question};
use crate::analysis::slo::Answer;

/// The least factor of a step up while every load is too dear. A server that is saturated gets no cheaper, so the steps must not become small.
const UP: f64 = 1.5;
/// Runs after which the bracket is halved, and no longer cut where costs say that the limit lies.
const AIMED: usize = 6;
/// Runs of which the cost is not known, before the search ends.
const UNKNOWN: usize = 2;

/// What to do next, to find the lowest load from which on tokens are cheap enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CheapestNext {
    /// An ordinary run.
    Probe {
        /// Its load.
        load: f64,
        /// Which run of this load it is, from 0.
        repeat: u32,
    },
    /// Nothing: the search is over.
    Ended(Cheapest),
}

/// From which load on tokens are cheap enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cheapest {
    /// From this one on.
    From {
        /// The lowest load that is cheap enough.
        load: f64,
        /// The highest one below it that is too dear; none where it is the lightest load of the range.
        dearer: Option<f64>,
    },
    /// Not even at the heaviest load of the range.
    Never {
        /// The heaviest load.
        load: f64,
    },
    /// It is not known what tokens cost: nobody counted them.
    Unknown,
}

/// What to do next, given all runs so far. An answer that holds is a run that is cheap enough, and its pressure is its cost over the limit.
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
            // Where the server keeps up, cost times load is the same everywhere, and says where the limit is.
            let aim = ((dearer * of_dearer) * (load * of_load)).sqrt();
            let middle = if own.count() < AIMED { aim } else { (dearer * load).sqrt() };
            probe(grid.nearest(middle.clamp(next, before)).clamp(next, before))
        }
    }
}

/// How many runs that may take.
pub fn most_cheapest(question: &Question) -> usize {
    let grid = Grid::of(question);
    let up = ((grid.last() / grid.first()).ln() / UP.ln()).ceil().max(0.0) as usize + 1;
    let halved = (grid.loads().len().max(1) as f64).log2().ceil() as usize + 1;
    up + AIMED + halved + UNKNOWN
}

/// The loads of which the cost is known, rising, each with its cost over the limit, on average over its runs.
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

    /// All runs of a search over a server whose cost over the limit is this at each load.
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
        // Throughput that falls beyond the knee: what is dear again higher up is none of the answer.
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
