//! Input of the symptom checks, and their findings.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::curve::{Curve, Run};
use crate::analysis::roofline::Prediction;

/// A symptom and its usual meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symptom {
    /// The symptom's name in files.
    pub key: &'static str,
    /// A short description of the observation.
    pub title: &'static str,
    /// The likely cause of the symptom.
    pub regime: &'static str,
    /// Evidence that would confirm the cause.
    pub confirm: &'static str,
    /// Evidence that would refute the cause.
    pub refute: &'static str,
    /// The first remedy to try.
    pub response: &'static str,
}

/// The result of looking for a symptom.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// The symptom is present in each of these places.
    Seen(Vec<Evidence>),
    /// The symptom was checked, and is absent or not shown; contains a description of the figures.
    NotSeen(String),
    /// The symptom could not be checked; contains a description of the missing data.
    NotChecked(String),
}

/// One place where a symptom is present.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// Full ids of the runs that show the symptom.
    pub runs: Vec<String>,
    /// A sentence with the figures.
    pub text: String,
}

/// A symptom and its finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The symptom.
    pub symptom: Symptom,
    /// The finding.
    pub finding: Finding,
}

/// A run, and the upper bound on its decode speed that follows from memory bandwidth alone.
#[derive(Debug, Clone, Copy)]
pub struct Predicted<'a> {
    /// The run.
    pub run: Run<'a>,
    /// The upper bound on the run's decode speed.
    pub prediction: Prediction,
}

impl Predicted<'_> {
    /// Returns the decode tokens per second of one stream: the inverse of the median TPOT. `None` if the
    /// median is unknown.
    pub fn measured(&self) -> Option<f64> {
        let tpot = self.run.metrics.tpot.percentile(crate::plan::Percentile::P50).exact()?;
        (tpot > 0.0).then(|| 1000.0 / tpot)
    }

    /// Returns the ratio of the measured to the predicted speed; `None` if the measured speed is unknown.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.measured()? / self.prediction.best())
    }
}

/// Two runs that differ only in their cache state.
#[derive(Debug, Clone, Copy)]
pub struct Twins<'a> {
    /// The run whose prompts share the declared prefix of the scenario.
    pub warm: Run<'a>,
    /// The run with the same prompts but without any shared prefix.
    pub cold: Run<'a>,
}

/// All data that is searched for symptoms.
#[derive(Debug, Clone, Copy)]
pub struct Evident<'a> {
    /// Curves of the plan.
    pub curves: &'a [Curve<'a>],
    /// Runs for which a bound is known.
    pub predicted: &'a [Predicted<'a>],
    /// The reasons why other runs have no bound, each listed once.
    pub unpredicted: &'a [String],
    /// Warm runs with their cold twins.
    pub twins: &'a [Twins<'a>],
    /// Maximum time per token that the plan's objective allows, in milliseconds; `None` if it sets no
    /// such limit.
    pub token_limit_ms: Option<f64>,
    /// Maximum number of running requests per server, as declared in the plan, by full run id.
    pub batch_limits: &'a [(String, f64)],
}
