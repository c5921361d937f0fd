//! The bracket of a search, derived from the evidence of its runs, and the number of runs that the
//! doubling from the lower end of the range takes.

use super::grid::Grid;
use super::question::Probe;
use crate::analysis::slo::Answer;

/// The two loads between which the objective is crossed, according to the runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bracket {
    /// The highest load that held and lies below every load that missed; `None` if there is none.
    pub low: Option<f64>,
    /// The lowest load that missed; `None` if no load missed.
    pub high: Option<f64>,
}

/// Returns whether a run was observed to meet the objective. If the test is undecided, the observed
/// percentile decides.
pub(super) fn met(probe: &Probe) -> Option<bool> {
    match probe.answer? {
        Answer::Holds => Some(true),
        Answer::Misses => Some(false),
        Answer::Undecided => probe.pressure.map(|pressure| pressure <= 1.0),
    }
}

/// Returns the number of runs at a load that met the objective minus the number that did not. A run counts
/// twice if its test is decided.
pub(super) fn votes(probes: &[Probe], load: f64) -> i32 {
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

    /// Returns the bracket for reports. A load whose long run failed is too high, regardless of shorter
    /// runs.
    pub(super) fn below_failed_confirmations(self, probes: &[Probe]) -> Bracket {
        let failed = probes.iter().filter(|probe| probe.own && probe.confirms && met(probe) == Some(false));
        let failed = failed.map(|probe| probe.load).filter(|load| self.high.is_none_or(|high| *load < high));
        let Some(failed) = failed.reduce(f64::min) else { return self };
        let met =
            probes.iter().filter(|probe| probe.load < failed && votes(probes, probe.load) >= 0 && met(probe).is_some());
        Bracket { low: met.map(|probe| probe.load).reduce(f64::max), high: Some(failed) }
    }
}

/// Returns the maximum number of runs that the doubling takes.
pub(super) fn most(grid: &Grid) -> usize {
    let (mut load, mut count) = (grid.first(), 1);
    while load < grid.last() {
        load = grid.times(load, 2.0);
        count += 1;
    }
    count
}
