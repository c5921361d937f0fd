//! The outcome of a search.

use super::short::Short;
use crate::analysis::quantile;

/// How a search ended, and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The highest load that was found to meet the objective, confirmed if the question requests it.
    pub found: Option<f64>,
    /// The lowest load above the found one at which a run was shown to miss, or was observed to miss if
    /// the test is undecided.
    pub misses: Option<f64>,
    /// Why the search ended.
    pub end: End,
    /// Caveats about the result.
    pub caveats: Vec<Caveat>,
}

/// The reason why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum End {
    /// The load was found.
    Found,
    /// The lowest load of the range already misses.
    BelowRange,
    /// The highest load of the range still meets the objective.
    AboveRange,
    /// A load misses, but a higher load holds.
    NotMonotone,
    /// The server became faster or slower during the search.
    Drifting,
    /// Runs of one load differ by more than the resolution.
    Unsteady,
    /// Every load that needed confirmation failed its long run.
    Unconfirmed,
    /// The maximum number of runs was reached.
    OutOfProbes,
    /// A load cannot be decided by any run, because windows at this load have too few requests for the
    /// percentile.
    TooFewRequests,
}

impl End {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A caveat about a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Caveat {
    /// It is not shown at 95 % that the load meets the objective. The long run at this load, or the
    /// ordinary runs if no long run is requested, were only observed to meet the objective. This caveat
    /// is withdrawn if all runs of the load together show it.
    NotShown {
        /// The load.
        load: f64,
    },
    /// A load was found, but no long run confirms it.
    Unconfirmed {
        /// The load.
        load: f64,
    },
    /// Some long runs failed before a long run held.
    FailedConfirmations {
        /// Number of failed long runs.
        runs: u32,
        /// The lowest load of these runs.
        lowest: f64,
    },
    /// A load misses, but a higher load holds.
    NotMonotone {
        /// The load that misses.
        misses: f64,
        /// The higher load that holds.
        holds: f64,
    },
    /// The load at which the objective is crossed moved during the search.
    Drift {
        /// The relative change of this load from the first run to the last; negative if the server became
        /// slower.
        share: f64,
    },
    /// Some runs are slower than others by more than noise explains.
    Unsteady {
        /// The difference: a share of the pressure if two runs contradict each other, or of the load if
        /// the fit shows two kinds of runs.
        share: f64,
    },
    /// The result may be off by more than the resolution.
    Coarse {
        /// The lowest load that may be the correct result.
        low: f64,
        /// The highest load that may be the correct result.
        high: f64,
    },
    /// Some runs were invalid and provide no evidence.
    Invalid {
        /// Number of invalid runs.
        runs: u32,
    },
    /// No run at the load can decide whether the load meets the objective.
    TooFewRequests {
        /// The load.
        load: f64,
        /// The percentile for which runs at the load have too few requests.
        short: Short,
    },
}

impl std::fmt::Display for Caveat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share.abs());
        match self {
            Caveat::NotShown { load } => {
                write!(f, "not shown at 95 % by the runs at {load}")
            }
            Caveat::Unconfirmed { load } => write!(f, "no long run confirms {load}"),
            Caveat::FailedConfirmations { runs: 1, lowest } => {
                write!(f, "the long run at {lowest} missed the objective as observed")
            }
            Caveat::FailedConfirmations { runs, lowest } => {
                write!(f, "{runs} long runs from {lowest} upwards missed the objective as observed")
            }
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
            Caveat::Coarse { low, high } if low == high => {
                write!(f, "runs differ too much for the resolution: only about {low} agrees with them")
            }
            Caveat::Coarse { low, high } => {
                write!(f, "runs differ too much for the resolution: every limit from {low} to {high} agrees with them")
            }
            Caveat::Invalid { runs: 1 } => write!(f, "one run was invalid and does not count"),
            Caveat::Invalid { runs } => write!(f, "{runs} runs were invalid and do not count"),
            Caveat::TooFewRequests { load, short: Short { percentile, requests, needs } } => write!(
                f,
                "runs at {load} have too few requests to decide: {requests}, but a {} needs at least {needs}; extend \
                 the window",
                quantile::name(*percentile)
            ),
        }
    }
}
