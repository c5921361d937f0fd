//! The range that is left: doubling from the lower end, then halving.

use super::Answer;
use super::{Grid, Probe};

/// What is known from the runs, load by load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bracket {
    /// The highest load that held below every one that missed.
    pub low: Option<f64>,
    /// The lowest load that missed.
    pub high: Option<f64>,
}

/// What the bracket asks for.
pub(super) enum Step {
    /// A run of this load.
    Probe(f64),
    /// Nothing more: this is the highest load that holds; none where none does.
    Settled(Option<f64>),
}

/// Invalid runs that are made up for, and the runs of each load that decides.
const INVALID: usize = 4;
const VOTES: i32 = 2;

/// Whether a run met the objective as far as it says: a limit not exceeded where the test is undecided. None where it says nothing.
pub(super) fn met(probe: &Probe) -> Option<bool> {
    match probe.answer? {
        Answer::Holds => Some(true),
        Answer::Misses => Some(false),
        Answer::Undecided => probe.pressure.map(|pressure| pressure <= 1.0),
    }
}

/// Runs that met the objective at a load less those that did not; shown ones count twice.
fn votes(probes: &[Probe], load: f64) -> i32 {
    let vote = |probe: &Probe| {
        let weight = if probe.answer == Some(Answer::Undecided) { 1 } else { 2 };
        met(probe).map_or(0, |met| if met { weight } else { -weight })
    };
    probes.iter().filter(|probe| probe.load == load).map(vote).sum()
}

impl Bracket {
    pub(super) fn of(grid: &Grid, probes: &[Probe]) -> Bracket {
        let mut measured: Vec<f64> =
            probes.iter().filter(|probe| met(probe).is_some()).map(|probe| probe.load).collect();
        measured.retain(|load| (grid.first()..=grid.last()).contains(load));
        measured.sort_unstable_by(f64::total_cmp);
        measured.dedup();
        let high = measured.iter().copied().find(|load| votes(probes, *load) < 0);
        let low = measured.iter().rev().copied().find(|load| high.is_none_or(|high| *load < high));
        Bracket { low, high }
    }

    pub(super) fn next(&self, grid: &Grid, probes: &[Probe]) -> Step {
        let undecided = |load: &f64| votes(probes, *load).abs() < VOTES && runs(probes, *load) < 3;
        // A load that decides is measured until its runs agree.
        if let Some(load) = [self.low, self.high].into_iter().flatten().find(undecided) {
            return Step::Probe(load);
        }
        match (self.low, self.high) {
            (None, None) => Step::Probe(grid.first()),
            (None, Some(high)) if high > grid.first() => Step::Probe(grid.first()),
            (None, Some(_)) => Step::Settled(None),
            (Some(low), None) if low < grid.last() => Step::Probe(grid.times(low, 2.0)),
            (Some(low), None) => Step::Settled(Some(low)),
            (Some(low), Some(high)) => {
                let middle = grid.at_or_below((low * high).sqrt());
                let middle = if middle > low { Some(middle) } else { grid.above(low) };
                middle.filter(|middle| *middle < high).map_or(Step::Settled(Some(low)), Step::Probe)
            }
        }
    }
}

fn runs(probes: &[Probe], load: f64) -> usize {
    probes.iter().filter(|probe| probe.load == load && !probe.confirms).count()
}

/// The most runs that doubling and halving take.
pub(super) fn most(grid: &Grid) -> usize {
    let doubling = (grid.last() / grid.first()).log2().ceil() as usize + 1;
    let halving = (grid.loads().len() as f64).log2().ceil() as usize + 1;
    3 * (doubling + halving) + INVALID
}
