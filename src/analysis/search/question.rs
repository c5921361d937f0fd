//! What a search is asked, what it has seen, and what it answers.

use super::outcome::Outcome;
use super::short::Short;
use crate::analysis::slo::Answer;

/// What is looked for: the highest load in `[from, to]` that meets the objective, to a relative resolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The lowest load that is of interest.
    pub from: f64,
    /// The highest load that is of interest.
    pub to: f64,
    /// The resolution, as a share of the load: 0.05 for 5 %.
    pub within: f64,
    /// Whether loads are whole numbers: batch sizes, sessions.
    pub whole: bool,
    /// Whether a long run confirms what was found.
    pub confirm: bool,
}

/// One finished run. Several at one load are repeats of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Its load.
    pub load: f64,
    /// Whether it is the long run that confirms.
    pub confirms: bool,
    /// Whether this search asked for it. One that another search of the same loads asked for, for another objective, says as much of the
    /// server, and is no step of this search: it is not counted, and its long run confirms nothing here.
    pub own: bool,
    /// What this run alone says of the objective, and of whether the server kept up; none of an invalid run, which says nothing.
    pub answer: Option<Answer>,
    /// The observed percentile over its limit, the largest over the limits; infinite where it lies among failures.
    pub pressure: Option<f64>,
    /// Requests of its window.
    pub requests: u64,
    /// What it has too few requests for; none where it has enough.
    pub short: Option<Short>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// An ordinary run.
    Probe {
        /// Its load.
        load: f64,
        /// Which run of this load it is, from 0.
        repeat: u32,
    },
    /// The long run that confirms.
    Confirm {
        /// Its load.
        load: f64,
        /// Which long run of this load it is, from 0.
        repeat: u32,
    },
    /// Nothing: the search is over.
    Ended(Outcome),
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The highest load seen to hold below every load that missed; none where none held.
    pub low: Option<f64>,
    /// The lowest load seen to miss above it; none where none missed.
    pub high: Option<f64>,
    /// Runs so far, invalid ones among them.
    pub runs: usize,
    /// The load that a long run is to confirm, once there is one.
    pub confirming: Option<f64>,
}

impl Next {
    /// An ordinary run of a load, after these runs.
    pub(super) fn probe(probes: &[Probe], load: f64) -> Next {
        Next::Probe { load, repeat: repeats(probes, load, false) }
    }

    /// The long run of a load, after these runs.
    pub(super) fn confirm(probes: &[Probe], load: f64) -> Next {
        Next::Confirm { load, repeat: repeats(probes, load, true) }
    }
}

fn repeats(probes: &[Probe], load: f64, confirms: bool) -> u32 {
    probes.iter().filter(|probe| probe.load == load && probe.confirms == confirms).count() as u32
}
