//! What symptoms are looked for in, and what was found of them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::curve::{Curve, Run};
use crate::analysis::roofline::Prediction;

/// What a symptom is, and what it usually means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symptom {
    /// Its name in files.
    pub key: &'static str,
    /// What is seen.
    pub title: &'static str,
    /// What it is likely to come from.
    pub regime: &'static str,
    /// What would confirm that.
    pub confirm: &'static str,
    /// What would refute it.
    pub refute: &'static str,
    /// What to try first.
    pub response: &'static str,
}

/// What looking for a symptom came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// It is there, in each of these places.
    Seen(Vec<Evidence>),
    /// It was looked for and is not there.
    NotSeen(String),
    /// Nobody could look: what is missing.
    NotChecked(String),
}

/// One place where a symptom is seen.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// Full ids of the runs that show it.
    pub runs: Vec<String>,
    /// The figures, in a sentence.
    pub text: String,
}

/// A symptom and what was found of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The symptom.
    pub symptom: Symptom,
    /// What was found.
    pub finding: Finding,
}

/// A run beside what memory bandwidth alone would allow.
#[derive(Debug, Clone, Copy)]
pub struct Predicted<'a> {
    /// The run.
    pub run: Run<'a>,
    /// The bound.
    pub prediction: Prediction,
}

impl Predicted<'_> {
    /// Decode tokens per second of one stream: one over the median TPOT. Null where that is.
    pub fn measured(&self) -> Option<f64> {
        let tpot = self.run.metrics.tpot.percentile(crate::plan::Percentile::P50).exact()?;
        (tpot > 0.0).then(|| 1000.0 / tpot)
    }

    /// Measured over predicted.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.measured()? / self.prediction.best())
    }
}

/// Two runs that differ in the cache alone.
#[derive(Debug, Clone, Copy)]
pub struct Twins<'a> {
    /// Prompts share what the scenario declares.
    pub warm: Run<'a>,
    /// The same prompts, nothing of them shared.
    pub cold: Run<'a>,
}

/// All that symptoms are looked for in.
#[derive(Debug, Clone, Copy)]
pub struct Evident<'a> {
    /// Curves of the plan.
    pub curves: &'a [Curve<'a>],
    /// Runs with a bound.
    pub predicted: &'a [Predicted<'a>],
    /// Why other runs have none, each reason once.
    pub unpredicted: &'a [String],
    /// Warm runs with their cold twins.
    pub twins: &'a [Twins<'a>],
    /// The most that a token may take by the plan's objective, in milliseconds.
    pub token_limit_ms: Option<f64>,
    /// How many requests a server runs at most, as its plan declares it, by the full id of the run.
    pub batch_limits: &'a [(String, f64)],
}
