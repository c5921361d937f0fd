//! The methods that were compared with the one that the program uses.

use crate::analysis::search::bracket::{self, Bracket, met, votes};
use crate::analysis::search::grid::Grid;
use crate::analysis::search::method::{Method, Step};
use crate::analysis::search::question::Probe;
use crate::analysis::slo::Answer;

/// Returns the next load of the doubling; `None` once a load has missed, or the last load has held.
fn doubling(bracket: &Bracket, grid: &Grid) -> Option<f64> {
    match (bracket.low, bracket.high) {
        (None, None) => Some(grid.first()),
        (None, Some(high)) => (high > grid.first()).then(|| grid.first()),
        (Some(low), None) => (low < grid.last()).then(|| grid.times(low, 2.0)),
        (Some(_), Some(_)) => None,
    }
}

/// Halves the range between the highest load that holds and the lowest that misses, with up to three
/// runs at each of these loads.
pub(super) struct Bisection;

impl Method for Bisection {
    fn next(&self, grid: &Grid, probes: &[Probe], bracket: &Bracket) -> Step {
        let runs = |load: f64| probes.iter().filter(|probe| probe.load == load && !probe.confirms).count();
        let unclear = |load: &f64| votes(probes, *load).abs() < 2 && runs(*load) < 3;
        if let Some(load) = [bracket.low, bracket.high].into_iter().flatten().find(unclear) {
            return Step::Probe(load);
        }
        if let Some(load) = doubling(bracket, grid) {
            return Step::Probe(load);
        }
        let (Some(low), Some(high)) = (bracket.low, bracket.high) else { return Step::Settled(bracket.low) };
        let middle = grid.at_or_below((low * high).sqrt());
        let middle = if middle > low { Some(middle) } else { grid.above(low) };
        middle.filter(|middle| *middle < high).map_or(Step::Settled(Some(low)), Step::Probe)
    }

    fn most(&self, grid: &Grid) -> usize {
        let halving = (grid.loads().len() as f64).log2().ceil() as usize + 1;
        3 * (bracket::most(grid) + halving)
    }
}

/// Stochastic bisection (Horstein, 1963; Waeber, Frazier, Henderson, 2013): a posterior of the highest
/// load that holds, computed only from whether runs hold or miss. The next run is at the median of the
/// posterior.
pub(super) struct Stochastic;

const MOST: usize = 14;

impl Method for Stochastic {
    fn next(&self, grid: &Grid, probes: &[Probe], bracket: &Bracket) -> Step {
        if let Some(load) = doubling(bracket, grid) {
            return Step::Probe(load);
        }
        // For each load, a weight for the case that it is the highest that holds; the first weight is for the
        // case that no load holds.
        let mut weights = vec![1.0; grid.loads().len() + 1];
        for probe in probes {
            let Some(met) = met(probe) else { continue };
            let sure: f64 = if probe.answer == Some(Answer::Undecided) { 0.7 } else { 0.95 };
            for (at, weight) in weights.iter_mut().enumerate() {
                let holds = at > 0 && grid.loads()[at - 1] >= probe.load;
                *weight *= if holds == met { sure } else { 1.0 - sure };
            }
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        let quantile = |share: f64| {
            let mut sum = 0.0;
            let reached = |weight: &f64| {
                sum += weight;
                sum >= share
            };
            weights.iter().position(reached).unwrap_or(weights.len() - 1)
        };
        let (low, middle, high) = (quantile(0.1), quantile(0.5), quantile(0.9));
        let runs = probes.iter().filter(|probe| !probe.confirms).count();
        let confirmed = probes.iter().any(|probe| probe.confirms);
        if confirmed || high - low <= 2 || runs >= bracket::most(grid) + MOST {
            return Step::Settled(middle.checked_sub(1).map(|at| grid.loads()[at]));
        }
        // The median lies between this load and the next, so the next one is decisive.
        Step::Probe(grid.loads()[middle.min(grid.loads().len() - 1)])
    }

    fn most(&self, grid: &Grid) -> usize {
        bracket::most(grid) + MOST
    }
}
