//! What sweeps have found so far. Pure data: nothing here decides.

use std::sync::Arc;

use crate::plan::AskedMetric;
use crate::units::Decimal;

use super::RunId;

/// What is known of the sweeps that others ask.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// What each cell of them, but for its load, has found.
    pub findings: Vec<Finding>,
}

/// What the runs of a sweep that differ in their load alone have found, or those that differ in nothing have measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// What it was asked for.
    pub metric: AskedMetric,
    /// Their values on all other axes; where a metric was asked for, on all axes.
    pub cell: Vec<(String, String)>,
    /// The answer.
    pub says: Says,
    /// The runs it rests on.
    pub runs: Vec<RunId>,
}

/// An answer to the question for the highest load, or for a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    /// None yet; how it stands, in words.
    Open(String),
    /// A load.
    Load {
        /// The highest load that meets the objective.
        load: Decimal,
        /// The highest that surely does: that load where its runs show it at 95 %, else the one below it by the resolution of the search
        /// that found it. None where that lies below the range.
        surely: Option<Decimal>,
        /// Whether it is the heaviest that was run, so that the highest may lie above it.
        is_least: bool,
        /// What a reader must know of it, in words.
        caveats: Vec<String>,
    },
    /// The value of a metric, in its unit.
    Measured {
        /// Over the repeats.
        value: f64,
        /// From where to where it may lie, at 95 %; none where nothing tells.
        ends: Option<[f64; 2]>,
        /// Runs that it is of.
        runs: usize,
    },
    /// The lightest load that was run, this one, misses the objective.
    Below(Decimal),
    /// No answer, or one that is in doubt; why, in words.
    Nothing(String),
}

impl Finding {
    /// What people call it: `limit: vllm · llama · chat`.
    pub fn title(&self) -> String {
        let values: Vec<&str> = self.cell.iter().map(|(_, value)| value.as_str()).collect();
        format!("{}: {}", self.sweep, values.join(" · "))
    }
}
