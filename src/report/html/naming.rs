//! Names of curves and runs on the page. They are the same as in the output of `curves`.

use crate::analysis::curve::{Axis, Curve};
use crate::report::curves::{differ, title};
use crate::report::format::plain;
use crate::rows::RunLabels;

/// Names curves so that the names are distinct, but no longer than necessary.
pub(super) struct Names {
    models: bool,
    sweeps: bool,
}

impl Names {
    /// Determines what the names of a plan's curves must contain.
    pub(super) fn of(curves: &[Curve]) -> Names {
        let (models, sweeps) = differ(curves.iter().map(|curve| &curve.series));
        Names { models, sweeps }
    }

    /// Returns the name of a curve, which distinguishes it from all other curves.
    pub(super) fn curve(&self, curve: &Curve) -> String {
        title(&curve.series, self.models, self.sweeps)
    }
}

/// Returns the name of what serves a curve: the endpoint, the flags of the server that the sweep varies, and the cap if
/// there is one.
pub(super) fn configuration(curve: &Curve) -> String {
    let settings = curve.series.settings().map(|(flag, value)| format!(" · {}={}", plain(flag), plain(value)));
    let cap = curve.series.cap.map(|cap| format!(", at most {cap} in flight"));
    format!("{}{}{}", plain(&curve.series.endpoint), settings.collect::<String>(), cap.unwrap_or_default())
}

/// Returns the name of the endpoint of a curve, with the cap if there is one.
pub(super) fn arm(curve: &Curve) -> String {
    let cap = curve.series.cap.map(|cap| format!(", at most {cap} in flight"));
    format!("{}{}", plain(&curve.series.endpoint), cap.unwrap_or_default())
}

/// Returns the title of a load axis: `batch size` or `offered rate`, with the unit.
pub(super) fn axis_title(axis: Axis) -> &'static str {
    match axis {
        Axis::Qps => "offered rate, requests/s",
        Axis::BatchSize => "batch size, requests in flight",
    }
}

/// Formats a load: `qps 25`, `batch size 8`.
pub(super) fn load_of(axis: Axis, load: f64) -> String {
    format!("{} {load}", axis.name().replace('_', " "))
}

/// Formats the load of a run.
pub(super) fn load(labels: &RunLabels) -> String {
    match (labels.qps, labels.batch_size) {
        (Some(qps), Some(cap)) => format!("qps {qps}, at most {cap} in flight"),
        (Some(qps), None) => format!("qps {qps}"),
        (None, Some(batch)) => format!("batch size {batch}"),
        (None, None) => "n/a".to_owned(),
    }
}

/// Formats the workload of a run: its scenario and its values on further axes.
pub(super) fn content(labels: &RunLabels) -> String {
    let axes = labels.axes.iter().map(|(axis, value)| format!(" · {}={}", plain(axis), plain(value)));
    format!("{}{}", plain(&labels.scenario), axes.collect::<String>())
}

/// Returns the beginning of a run's id, as shown in tables.
pub(super) fn short(id: &str) -> String {
    id.chars().take(8).collect()
}
