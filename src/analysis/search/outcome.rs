//! How a search ends.

use super::short::Short;
use crate::analysis::quantile;

/// How a search ended, and what it found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The highest load that was found to meet the objective, confirmed where the question asks for it.
    pub found: Option<f64>,
    /// The lowest load above it of which a run missed, shown or as observed where the test is undecided.
    pub misses: Option<f64>,
    /// Why the search ended.
    pub end: End,
    /// What the reader must know of the answer.
    pub caveats: Vec<Caveat>,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum End {
    /// The load was found.
    Found,
    /// The lowest load of the range misses already.
    BelowRange,
    /// The highest load of the range still meets the objective.
    AboveRange,
    /// A load misses and a higher one holds.
    NotMonotone,
    /// The server became faster or slower while the search went on.
    Drifting,
    /// Runs of one load differ by more than the resolution.
    Unsteady,
    /// Every load that was to be confirmed failed its long run.
    Unconfirmed,
    /// The bound on runs was reached.
    OutOfProbes,
    /// No run at a load that has to be decided can tell: its window has too few requests for the percentile.
    TooFewRequests,
}

impl End {
    /// The name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What the reader must know of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Caveat {
    /// Nothing shows at 95 % that the load meets the objective: its long run, or its runs where no long one is asked for, met it as observed at
    /// most. Where all runs of the load together show it, that is taken back.
    NotShown {
        /// The load.
        load: f64,
    },
    /// A load was found, and no long run confirms it.
    Unconfirmed {
        /// The load.
        load: f64,
    },
    /// Long runs failed before one held.
    FailedConfirmations {
        /// How many.
        runs: u32,
    },
    /// A load misses and a higher one holds.
    NotMonotone {
        /// The load that misses.
        misses: f64,
        /// The higher one that holds.
        holds: f64,
    },
    /// The load at which the objective is crossed moved while the search went on.
    Drift {
        /// By which share of it, from the first run to the last; negative where the server became slower.
        share: f64,
    },
    /// Some runs are slower than others by more than noise.
    Unsteady {
        /// By which share: of the pressure where two runs contradict each other, of the load where the fit shows two kinds of runs.
        share: f64,
    },
    /// The answer may be off by more than the resolution.
    Coarse {
        /// The least load that may be the right one.
        low: f64,
        /// The highest load that may be the right one.
        high: f64,
    },
    /// Runs that were invalid: they say nothing.
    Invalid {
        /// How many.
        runs: u32,
    },
    /// No run of a load can tell.
    TooFewRequests {
        /// The load.
        load: f64,
        /// What its runs have too few requests for.
        short: Short,
    },
}

impl std::fmt::Display for Caveat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share.abs());
        match self {
            Caveat::NotShown { load } => {
                write!(f, "no runs at {load} show it at 95 %")
            }
            Caveat::Unconfirmed { load } => write!(f, "no long run confirms {load}"),
            Caveat::FailedConfirmations { runs: 1 } => write!(f, "one higher load failed its long run"),
            Caveat::FailedConfirmations { runs } => write!(f, "{runs} higher loads failed their long runs"),
            Caveat::NotMonotone { misses, holds } => {
                write!(f, "not monotone: {misses} misses and {holds} holds")
            }
            Caveat::Drift { share } => {
                let change = if *share < 0.0 { "slower" } else { "faster" };
                write!(f, "the server became {change} during the search: the load moved by about {}", percent(*share))
            }
            Caveat::Unsteady { share } => {
                write!(f, "runs contradict each other: some are slower, by about {}", percent(*share))
            }
            Caveat::Coarse { low, high } => {
                write!(f, "runs differ too much for the resolution: the load may be anywhere from {low} to {high}")
            }
            Caveat::Invalid { runs: 1 } => write!(f, "one run was invalid and says nothing"),
            Caveat::Invalid { runs } => write!(f, "{runs} runs were invalid and say nothing"),
            Caveat::TooFewRequests { load, short: Short { percentile, requests, needs } } => write!(
                f,
                "no run at {load} can tell: {requests} requests, and a {} takes at least {needs}; prolong the window",
                quantile::name(*percentile)
            ),
        }
    }
}
