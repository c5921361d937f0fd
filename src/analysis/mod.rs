//! Turns rows into numbers. The code is pure and does no I/O.
//!
//! A run consists of its requests (`&[Measured]`), aggregates of their token events (`Events`) and
//! aggregates of the gaps between these events (`Gaps`). `measure` turns these into `RunMetrics`,
//! `judge` into a `Verdict`; both are computed when read, so a new metric or threshold needs no new run.
//! `metric` is the single table of names, units and definitions for exports and reports.

/// Version of everything computed from stored rows: metrics, verdicts and their reasons. It is raised
/// when the same rows lead to different numbers or a different verdict. Exports, baselines and cached
/// tables contain this version; run ids do not (`docs/METRICS.md`, Versions).
pub const ANALYSIS: u32 = 5;

pub mod binomial;
pub(crate) mod bunches;
mod by_worker;
pub mod calibration;
pub mod capacity;
pub mod change;
mod classes;
pub mod comparison;
pub mod curve;
pub mod diagnosis;
pub mod dispersion;
pub mod ecdf;
mod emission;
mod facing;
mod failures;
mod finish_reasons;
pub mod flight;
pub mod flow;
pub mod gaps;
pub mod generator;
pub mod goodput;
pub mod halving;
pub mod highest;
mod idle;
mod lateness;
mod length_failures;
pub mod lengths;
pub mod measure;
pub mod metric;
pub mod paired;
mod pauses;
mod prompts;
mod pulse;
pub mod quantile;
pub mod queue;
mod reason;
mod received;
pub mod replicates;
pub mod request;
mod responses;
mod reuse;
pub mod roofline;
pub mod saturation;
pub mod scaling;
pub mod search;
pub mod sequential;
pub mod series;
pub mod server;
pub mod silence;
pub mod slo;
pub mod stalls;
mod state;
pub mod stats;
mod steady;
pub mod student;
mod tokens;
pub mod turns;
pub mod undecided;
pub mod verdict;
mod waits;
pub mod window;
pub mod worth;

#[cfg(test)]
mod known_answers;
#[cfg(test)]
mod simulations;
/// Simulated servers for the tests of this crate and of crates that show its results.
#[doc(hidden)]
pub mod synthetic;

pub use classes::{OfClass, classes};
pub use dispersion::FailureCount;
pub use failures::{Failure, Failures};
pub use finish_reasons::{FinishCount, FinishReasons};
pub use gaps::{Events, Gaps};
pub use goodput::{Thresholds, goodput};
pub use length_failures::{LengthCount, LengthFailures};
pub use measure::{RunMetrics, measure};
pub use metric::PlanMetrics;
pub use pulse::Pulse;
pub use server::{Part, ServerFigure, Whole};
pub use stalls::Stalls;
pub use stats::{Counted, Estimate, Interval, Summary, Value};
pub use tokens::MeanTokens;
pub use verdict::{Verdict, judge};
