//! Formats a metric, its change and its p-value, in the same way for every table of a comparison.

use crate::analysis::{metric, quantile};
use crate::plan::MetricName;

use super::format::digits;

/// Returns the title of a metric, with its percentile, if any, and its unit: `TTFT p99 ms`.
pub(crate) fn titled(metric: &str, unit: &str) -> String {
    let name = metric.parse::<MetricName>().ok();
    let title = name.and_then(|name| metric::find(name.key)).map_or(metric, |metric| metric.title);
    let percentile = name.and_then(|name| name.percentile).map_or(String::new(), |p| format!(" {}", quantile::name(p)));
    // If the title is the unit, as for `requests`, the unit is not repeated.
    let unit = if title == unit { "" } else { unit };
    format!("{title}{percentile} {unit}").trim_end().to_owned()
}

/// Formats a change with its 95 % interval.
pub(super) fn interval(of: &str, [value, low, high]: [f64; 3]) -> String {
    let one = |value: f64| match of {
        "ratio" if value < 10.0 => format!("{value:.3}"),
        "ratio" => digits(value),
        _ if value > 0.0 => format!("+{}", digits(value)),
        _ => digits(value),
    };
    format!("{} [{}, {}]", one(value), one(low), one(high))
}

/// Formats a p-value.
pub(super) fn chance(p: Option<f64>) -> String {
    match p {
        None => "n/a".to_owned(),
        Some(p) if p < 0.001 => "<0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}
