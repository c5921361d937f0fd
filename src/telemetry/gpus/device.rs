//! The types for a GPU that a tool lists and for its values, and a function that combines the values of
//! several GPUs.

use super::super::canonical::{CANONICAL, Kind};
use super::super::gathered::Gathered;
use super::super::page::Reading;

/// A GPU, or an instance of a GPU partitioned by MIG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    /// The number by which the tool identifies the GPU; for a MIG instance, the number of the whole GPU.
    pub(super) index: u32,
    /// The UUID; empty if the tool does not report it.
    pub(super) uuid: String,
    /// The name; empty if the tool does not report it.
    pub(super) name: String,
    /// Whether this is a MIG instance.
    pub(super) is_instance: bool,
}

impl Device {
    /// Returns the number of the GPU, or the UUID of a MIG instance, for display.
    pub(super) fn shown(&self) -> String {
        if self.is_instance { self.uuid.clone() } else { self.index.to_string() }
    }
}

/// The canonical values of one GPU, each with the name of its series. Unreported values are absent.
pub(super) type Values = Vec<(&'static str, f64)>;

/// Adds a value for the series `key` if there is one.
pub(super) fn put(values: &mut Values, key: &'static str, value: Option<f64>) {
    values.extend(value.map(|value| (key, value)));
}

/// Combines the values of several GPUs. If a GPU does not report a value, the combined value is absent,
/// because it would be incomplete.
pub(super) fn together(gpus: &[Values]) -> Reading {
    let mut reading = Reading::default();
    for series in CANONICAL.iter().filter(|series| series.source == "gpu" && series.kind != Kind::Histogram) {
        let mut gathered = Gathered::default();
        let of = |gpu: &Values| gpu.iter().find(|(key, _)| *key == series.key).map(|(_, value)| *value);
        gpus.iter().filter_map(of).for_each(|value| gathered.add(value, series.over, 0));
        if gathered.n == gpus.len() && !gpus.is_empty() {
            reading.canonical.extend(gathered.result(series.over).map(|value| (series, "", value)));
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_one_as_the_series_of_a_page_are() {
        let first = vec![("gpu_power_watts", 300.0), ("gpu_utilization", 0.5), ("gpu_temperature", 60.0)];
        let second = vec![
            ("gpu_power_watts", 200.0),
            ("gpu_utilization", 0.9),
            ("gpu_temperature", 71.0),
            ("gpu_throttle_reasons", 4.0),
        ];
        let both = together(&[first, second.clone()]);
        assert_eq!(both.get("gpu_power_watts"), Some(500.0));
        assert_eq!(both.get("gpu_utilization"), Some(0.7));
        assert_eq!(both.get("gpu_temperature"), Some(71.0));
        assert_eq!(both.get("gpu_throttle_reasons"), None, "one of them does not report it");
        let masks = [vec![("gpu_throttle_reasons", 0x20 as f64)], second];
        assert_eq!(together(&masks).get("gpu_throttle_reasons"), Some(0x24 as f64));
        assert_eq!(together(&[]), Reading::default());
    }
}
