//! The findings that earlier sweeps have produced. This is pure data; no decisions are made here.

use std::sync::Arc;

use crate::plan::AskedMetric;
use crate::units::Decimal;

use super::RunId;

/// The known findings of the sweeps on which other sweeps depend.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// The findings, one for each sweep, metric and cell.
    pub findings: Vec<Finding>,
}

/// The finding of a sweep in one cell: the highest load, from runs that differ only in their load, or the
/// value of a metric, from runs that differ only in their repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Name of the sweep.
    pub sweep: Arc<str>,
    /// The metric of the finding.
    pub metric: AskedMetric,
    /// The cell's values on all axes except the load; for a metric, on all axes.
    pub cell: Vec<(String, String)>,
    /// The result that the sweep found in the cell.
    pub says: Says,
    /// The runs that the finding is based on.
    pub runs: Vec<RunId>,
    /// What the runs of a search show; `None` if no search found the load, if the search is not over, or if its
    /// result is in doubt.
    pub search: Option<SearchFigures>,
}

/// What the runs of a search show about the highest load that meets the objective.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchFigures {
    /// The highest load that holds at 95 %; `None` if no load does.
    pub shown: Option<Decimal>,
    /// The highest load that met the objective in what was seen; `None` if no load did.
    pub observed: Option<Decimal>,
    /// The lowest load that is shown to miss the objective; `None` if no load is.
    pub misses: Option<Decimal>,
    /// How much longer the runs at undecided loads must be, in rising order of the loads.
    pub needs: Vec<Longer>,
    /// Whether the search ended because its runs have too few requests, which its own text says.
    pub is_short: bool,
}

/// How much longer the runs at a load must be to show whether the load meets the objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Longer {
    /// The load.
    pub load: Decimal,
    /// Whether the runs met the objective in what was seen.
    pub met: bool,
    /// The further time, in seconds.
    pub seconds: f64,
    /// The window of a long run that includes this time, in seconds.
    pub confirm: f64,
}

/// The result for the highest load, or for a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    /// There is no result yet; contains the current state as text.
    Open(String),
    /// The highest load that meets the objective.
    Load {
        /// The highest load that is observed to meet the objective.
        load: Decimal,
        /// The highest load that `skip_if` relies on: `load` if its runs show at 95 % that it meets the
        /// objective, otherwise the load that is one step of the search's resolution lower. `None` if that
        /// lower load is below the range.
        surely: Option<Decimal>,
        /// Whether `load` is the heaviest load that was run, so that the true highest load may be above it.
        is_least: bool,
        /// Caveats for readers.
        caveats: Vec<String>,
    },
    /// The value of a metric, in its unit.
    Measured {
        /// The value over all repeats.
        value: f64,
        /// The ends of the value's 95 % interval; `None` if unknown.
        ends: Option<[f64; 2]>,
        /// Number of runs that the value is based on.
        runs: usize,
    },
    /// The lightest load that was run already misses the objective.
    Below(Decimal),
    /// There is no result, or only a doubtful one; contains the reason.
    Nothing(String),
}

impl SearchFigures {
    /// Formats both figures: `shown 22.9 qps, observed 24 qps`.
    pub fn words(&self, metric: AskedMetric) -> String {
        let of = |load: Option<Decimal>| load.map_or_else(|| "none".to_owned(), |load| metric.words(load.to_f64()));
        format!("shown {}, observed {}", of(self.shown), of(self.observed))
    }
}

impl Finding {
    /// The value with its unit: `24 qps`, `at least 24 qps`, `512 ms`, or for a search both figures (`shown 22.9
    /// qps, observed 24 qps`); `None` if there is no value.
    pub fn value(&self) -> Option<String> {
        if let Some(figures) = &self.search {
            return Some(figures.words(self.metric)).filter(|_| figures.observed.is_some());
        }
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

    /// The ends of the value's 95 % interval; `None` for loads, and if they are unknown.
    pub fn interval(&self) -> Option<String> {
        match &self.says {
            Says::Measured { ends: Some(ends), .. } if ends[1].is_finite() => {
                Some(ends.map(|end| self.metric.words(end)).join(" to "))
            }
            _ => None,
        }
    }

    /// The reason why the value is missing, or a caveat; `None` if neither applies.
    pub fn note(&self) -> Option<String> {
        match &self.says {
            Says::Open(why) | Says::Nothing(why) => Some(why.clone()),
            Says::Below(load) => {
                Some(format!("{}, the lightest load, misses the objective", self.metric.words(load.to_f64())))
            }
            Says::Load { caveats, .. } => (!caveats.is_empty()).then(|| caveats.join("; ")),
            Says::Measured { ends: None, runs: 1, .. } => Some("a single run has no interval".to_owned()),
            Says::Measured { ends: None, .. } => Some("it has no interval".to_owned()),
            Says::Measured { .. } => None,
        }
    }

    /// The full text with its title: `limit: vllm · llama · chat: 24 qps`.
    pub fn words(&self) -> String {
        let interval = self.interval().map(|interval| format!(" ({interval})")).unwrap_or_default();
        let value = self.value().map(|value| format!("{value}{interval}"));
        let said: Vec<String> = value.into_iter().chain(self.note()).collect();
        format!("{}: {}", self.title(), said.join("; "))
    }

    /// The title: `limit: vllm · llama · chat`.
    pub fn title(&self) -> String {
        let values: Vec<&str> = self.cell.iter().map(|(_, value)| value.as_str()).collect();
        format!("{}: {}", self.sweep, values.join(" · "))
    }
}
