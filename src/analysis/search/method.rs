//! The parts of a search that depend on its method. The program has one method; the simulations
//! have more.

use super::bracket::Bracket;
use super::grid::Grid;
use super::question::Probe;

/// The next step of a method.
pub(super) enum Step {
    /// A run at this load.
    Probe(f64),
    /// No further runs: this is the highest load that holds; `None` if no load holds.
    Settled(Option<f64>),
}

/// How the load is found, before a long run confirms it.
pub(super) trait Method {
    /// Returns the next run, or the load that was found; `bracket` is the bracket of `probes`.
    fn next(&self, grid: &Grid, probes: &[Probe], bracket: &Bracket) -> Step;
    /// Returns the maximum number of runs, including the first.
    fn most(&self, grid: &Grid) -> usize;
}
