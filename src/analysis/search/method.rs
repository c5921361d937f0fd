//! What a search by any method is made of; the program has one, the simulations have more.

use super::bracket::Bracket;
use super::grid::Grid;
use super::question::Probe;

/// What a method asks for.
pub(super) enum Step {
    /// A run of this load.
    Probe(f64),
    /// Nothing more: this is the highest load that holds; none where none does.
    Settled(Option<f64>),
}

/// How the load is found, before a long run confirms it.
pub(super) trait Method {
    /// The next run, or the load that was found; `bracket` is of `probes`.
    fn next(&self, grid: &Grid, probes: &[Probe], bracket: &Bracket) -> Step;
    /// The most runs that this takes, from the first.
    fn most(&self, grid: &Grid) -> usize;
}
