//! AMD's device metrics exporter. Its values in bytes are interpreted as MiB, which is what
//! `amd-smi` writes.

use super::source::{Exporter, Source, labelled, plain, scaled};

/// AMD device metrics exporter.
pub(super) const AMD: Exporter =
    Exporter { title: "AMD device metrics exporter", source: SOURCE, only_with: None, series: SERIES, counted: &[] };

const SOURCE: &str = "ROCm device-metrics-exporter 1.5.1 (ad44c71), `pkg/amdgpu/gpuagent/gpuagent_gpu_metrics.go`";

/// Number of bytes in a MiB.
const MIB: f64 = 1_048_576.0;

const SERIES: &[Source] = &[
    scaled("gpu_utilization", "gpu_gfx_activity", 0.01),
    scaled("gpu_memory_bandwidth_utilization", "gpu_umc_activity", 0.01),
    scaled("gpu_memory_used", "gpu_used_vram", MIB),
    scaled("gpu_memory_total", "gpu_total_vram", MIB),
    plain("gpu_power_watts", "gpu_package_power"),
    plain("gpu_power_watts", "gpu_average_package_power"),
    scaled("gpu_energy_joules", "gpu_energy_consumed", 1e-6),
    plain("gpu_temperature", "gpu_junction_temperature"),
    plain("gpu_temperature", "gpu_edge_temperature"),
    Source { factor: 1e6, ..labelled("gpu_sm_clock", "gpu_clock", &[("clock_type", &["system"])]) },
];
