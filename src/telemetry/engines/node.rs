//! Prometheus' node exporter. Time spent waiting for its disks (`iowait`) counts as idle time.

use super::source::{Exporter, Source, labelled, plain};

/// node exporter.
pub(super) const NODE: Exporter =
    Exporter { title: "node exporter", source: SOURCE, only_with: None, series: SERIES, counted: &[] };

const SOURCE: &str = "node_exporter 1.12.1 (6044da7), `collector/cpu_linux.go` and `collector/meminfo_linux.go`; \
                      1.5.0 has the same names";

const SERIES: &[Source] = &[
    plain("cpu_seconds", "node_cpu_seconds_total"),
    labelled("cpu_idle_seconds", "node_cpu_seconds_total", &[("mode", &["idle", "iowait"])]),
    plain("host_memory_available", "node_memory_MemAvailable_bytes"),
    plain("host_memory_total", "node_memory_MemTotal_bytes"),
];
