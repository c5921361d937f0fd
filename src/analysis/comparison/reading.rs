//! The value of a metric in one run, as used in a comparison. It is a number, or is worse than all
//! numbers, or is missing.

use serde::{Deserialize, Serialize};

use crate::analysis::metric::{self, Get};
use crate::analysis::stats::{Counted, Estimate, Value};
use crate::analysis::{PlanMetrics, RunMetrics, quantile};
pub use crate::metrics::Better;
use crate::metrics::Kind;
use crate::plan::{MetricName, Percentile};

/// The value of a metric in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunValue {
    /// A number, in the metric's unit.
    Known(f64),
    /// A number that is a percentile computed from few samples.
    Few(f64),
    /// The rank of the value falls among failures, so it is worse than all observed values.
    Failed,
    /// No value, for this reason.
    Missing(String),
}

impl RunValue {
    /// Returns the number; `None` if it lies among failures or is missing.
    pub fn number(&self) -> Option<f64> {
        match self {
            RunValue::Known(value) | RunValue::Few(value) => Some(*value),
            RunValue::Failed | RunValue::Missing(_) => None,
        }
    }

    /// Whether the run could never have the metric.
    pub(super) fn is_impossible(&self) -> bool {
        matches!(self, RunValue::Missing(why) if why.starts_with(NOT_KNOWN))
    }
}

/// The metrics that are compared if a plan names none: in an open loop, latencies are measured from the
/// schedule.
fn usual(open: bool) -> Vec<MetricName> {
    let names = if open { ["ttft_from_schedule", "tpot", "e2e_from_schedule"] } else { ["ttft", "tpot", "e2e"] };
    let single = ["output_throughput", "output_throughput_per_gpu"].map(|key| MetricName { key, percentile: None });
    single.into_iter().chain(names.into_iter().flat_map(both)).collect()
}

/// Returns the median and p99 of a request metric.
fn both(key: &'static str) -> [MetricName; 2] {
    [Percentile::P50, Percentile::P99].map(|percentile| MetricName { key, percentile: Some(percentile) })
}

/// Returns the metrics to compare: the named ones, with p50 and p99 for a request metric without a
/// percentile, or else the defaults for an open or closed loop.
pub fn expand(names: &[MetricName], open: bool) -> Vec<MetricName> {
    if names.is_empty() {
        return usual(open);
    }
    let mut all: Vec<MetricName> = Vec::new();
    for name in names {
        let is_distribution = metric::find(name.key).is_some_and(|metric| metric.kind.is_distribution());
        let of_name = if is_distribution && name.percentile.is_none() { both(name.key).to_vec() } else { vec![*name] };
        all.extend(of_name.into_iter().filter(|one| !all.contains(one)).collect::<Vec<_>>());
    }
    all
}

/// Returns the names of all values that a run can have.
pub fn all_names() -> Vec<MetricName> {
    let of = |metric: &metric::Metric| -> Vec<MetricName> {
        let key = metric.key;
        match metric.kind {
            Kind::Distribution { .. } => quantile::ALL.map(|one| MetricName { key, percentile: Some(one) }).to_vec(),
            _ => vec![MetricName { key, percentile: None }],
        }
    };
    metric::METRICS.iter().flat_map(of).collect()
}

/// Prefix of the reason why a run could never have a metric, such as a missing declaration or token
/// count.
const NOT_KNOWN: &str = "not known: ";

/// Returns the value of a metric over the requests of one class in a run. Values that depend on the plan's
/// prices and thresholds or on the batch size exist only for whole runs.
pub fn read_class(name: MetricName, class: &RunMetrics) -> RunValue {
    let is_of_run = metric::find(name.key).is_some_and(|metric| metric.kind == Kind::OfPlan);
    match is_of_run || name.key == "derived_server_throughput" {
        true => RunValue::Missing("not known for a single class".to_owned()),
        false => read(name, class, &PlanMetrics::default()),
    }
}

/// Returns the value of a metric in one run.
pub fn read(name: MetricName, run: &RunMetrics, plan: &PlanMetrics) -> RunValue {
    let Some(metric) = metric::find(name.key) else { return RunValue::Missing("unknown metric".to_owned()) };
    let known = |value: Option<f64>| {
        value.map_or_else(|| RunValue::Missing(format!("{NOT_KNOWN}{}", metric.null_when)), RunValue::Known)
    };
    match metric::get(metric) {
        Get::Count(get) => RunValue::Known(get(run) as f64),
        Get::Scalar(get) => known(get(run)),
        Get::Plan(get) => known(get(plan)),
        Get::Summary(get) => match get(run).percentile(name.percentile.unwrap_or(Percentile::P50)) {
            Estimate::Is { value: Value::Exact(value), few_samples: true, .. } => RunValue::Few(value),
            Estimate::Is { value: Value::Exact(value), .. } => RunValue::Known(value),
            Estimate::Is { .. } => RunValue::Failed,
            Estimate::NotEnough { n: 0, .. } => RunValue::Missing(format!("{NOT_KNOWN}{}", metric.null_when)),
            Estimate::NotEnough { n, need, of: Counted::Values } => {
                RunValue::Missing(format!("n={n} < {need} requests"))
            }
            Estimate::NotEnough { n, need, of } => RunValue::Missing(of.short_of(n, need)),
        },
    }
}
