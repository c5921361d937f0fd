//! The question that a search answers, its observations and its next step.

use super::outcome::Outcome;
use super::short::Short;
use crate::analysis::slo::Answer;

/// The target: the highest load in `[from, to]` that meets the objective, to a relative resolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The lowest load of the range.
    pub from: f64,
    /// The highest load of the range.
    pub to: f64,
    /// The resolution, as a share of the load: 0.05 for 5 %.
    pub within: f64,
    /// Whether loads are whole numbers, such as batch sizes or sessions.
    pub whole: bool,
    /// Whether a long run confirms the result.
    pub confirm: bool,
}

/// One finished run. Several runs at one load are repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// The load of the run.
    pub load: f64,
    /// Whether the run is the long one that confirms the result.
    pub confirms: bool,
    /// Whether this search requested the run. Another search over the same loads with another
    /// objective may have requested it instead. Such a run provides the same evidence on the server
    /// but is not a step of this search: it is not counted, and it confirms nothing here if it is a
    /// long run.
    pub own: bool,
    /// Whether this run alone meets the objective and shows that the server kept up; `None` for an
    /// invalid run, which provides no evidence.
    pub answer: Option<Answer>,
    /// The observed percentile divided by its limit, the largest ratio over all limits; infinite if
    /// the percentile lies among failures.
    pub pressure: Option<f64>,
    /// Number of requests in the run's window.
    pub requests: u64,
    /// The percentile for which the run has too few requests; `None` if the run has enough requests.
    pub short: Option<Short>,
    /// Whether all runs at this load up to this one together meet the objective; `None` if none is valid.
    pub together: Option<Answer>,
    /// The factor by which the requests at this load must become more so that all runs up to this one
    /// together show that the objective is met, if the share above each limit stays the same. `None` if this
    /// is shown, if the runs did not meet the objective in what was seen, or if no factor of reasonable size
    /// suffices.
    pub grows: Option<f64>,
}

/// An ordinary run that a search may request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ordinary {
    /// The load of the run.
    pub load: f64,
    /// Index among the ordinary runs of this load, from 0.
    pub repeat: u32,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// An ordinary run.
    Probe {
        /// The load of the run.
        load: f64,
        /// Index among the runs of this load, from 0.
        repeat: u32,
    },
    /// The long run that confirms the result.
    Confirm {
        /// The load of the run.
        load: f64,
        /// Index among the long runs of this load, from 0.
        repeat: u32,
        /// The ordinary run that ends the search instead if it exists already, because an earlier version ended
        /// the search with it; `None` if the search cannot end without the long run.
        instead: Option<Ordinary>,
    },
    /// Nothing, because the search is over.
    Ended(Outcome),
}

/// The state of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The highest load that was observed to hold and lies below every load that missed; `None` if no
    /// load held.
    pub low: Option<f64>,
    /// The lowest load above `low` that was observed to miss; `None` if no load missed.
    pub high: Option<f64>,
    /// Number of runs so far, including invalid ones.
    pub runs: usize,
    /// The load that a long run should confirm, once it is known.
    pub confirming: Option<f64>,
}

impl Next {
    /// Returns an ordinary run at a load, after the runs `probes`.
    pub(super) fn probe(probes: &[Probe], load: f64) -> Next {
        Next::Probe { load, repeat: repeats(probes, load, false) }
    }

    /// Returns the long run at a load, after the runs `probes`.
    pub(super) fn confirm(probes: &[Probe], load: f64) -> Next {
        Next::Confirm { load, repeat: repeats(probes, load, true), instead: None }
    }

    /// Returns the long run at a load that shows what holds, after the runs `probes`. An ordinary run at the
    /// load that was found ends the search.
    pub(super) fn show(probes: &[Probe], load: f64, found: f64) -> Next {
        let last = Ordinary { load: found, repeat: repeats(probes, found, false) };
        Next::Confirm { load, repeat: repeats(probes, load, true), instead: Some(last) }
    }
}

fn repeats(probes: &[Probe], load: f64, confirms: bool) -> u32 {
    probes.iter().filter(|probe| probe.load == load && probe.confirms == confirms).count() as u32
}
