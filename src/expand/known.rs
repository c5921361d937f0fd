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
    /// The value, in its unit: `24 qps`, `at least 24 qps`, `512 ms`; none where it has none.
    pub fn value(&self) -> Option<String> {
        match &self.says {
            Says::Load { load, is_least, .. } => {
                let least = if *is_least { "at least " } else { "" };
                Some(format!("{least}{}", self.metric.words(load.to_f64())))
            }
            Says::Measured { ends: Some([low, high]), .. } if high.is_infinite() => {
                Some(format!("above {}", self.metric.words(*low)))
            }
            Says::Measured { value, .. } => Some(self.metric.words(*value)),
            Says::Open(_) | Says::Nothing(_) | Says::Below(_) => None,
        }
    }

    /// From where to where the value may lie, at 95 %; none where nothing tells, and of loads.
    pub fn interval(&self) -> Option<String> {
        match &self.says {
            Says::Measured { ends: Some(ends), .. } if ends[1].is_finite() => {
                Some(ends.map(|end| self.metric.words(end)).join(" to "))
            }
            _ => None,
        }
    }

    /// Why it has no value, or what must be known of the one that it has; none where nothing must.
    pub fn note(&self) -> Option<String> {
        match &self.says {
            Says::Open(why) | Says::Nothing(why) => Some(why.clone()),
            Says::Below(load) => {
                Some(format!("{}, the lightest load, misses the objective", self.metric.words(load.to_f64())))
            }
            Says::Load { caveats, .. } => (!caveats.is_empty()).then(|| caveats.join("; ")),
            Says::Measured { ends: None, runs: 1, .. } => Some("one run has no interval".to_owned()),
            Says::Measured { ends: None, .. } => Some("it has no interval".to_owned()),
            Says::Measured { .. } => None,
        }
    }

    /// All of it, with what people call it: `limit: vllm · llama · chat: 24 qps`.
    pub fn words(&self) -> String {
        let interval = self.interval().map(|interval| format!(" ({interval})")).unwrap_or_default();
        let value = self.value().map(|value| format!("{value}{interval}"));
        let said: Vec<String> = value.into_iter().chain(self.note()).collect();
        format!("{}: {}", self.title(), said.join("; "))
    }

    /// What people call it: `limit: vllm · llama · chat`.
    pub fn title(&self) -> String {
        let values: Vec<&str> = self.cell.iter().map(|(_, value)| value.as_str()).collect();
        format!("{}: {}", self.sweep, values.join(" · "))
    }
}
