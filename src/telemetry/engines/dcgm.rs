//! NVIDIA's DCGM exporter, with the fields that it exports by default and its optional fields. It reads the
//! GPUs every 30 s by default. On a GPU partitioned by MIG, each instance reports the power of the whole
//! GPU, so a plan should map the power of only one instance.

use super::source::{Exporter, Source, plain, scaled};

/// The table of metrics of the DCGM exporter.
pub(super) const DCGM: Exporter =
    Exporter { title: "DCGM exporter", source: SOURCE, only_with: None, series: SERIES, counted: &[] };

const SOURCE: &str = "DCGM exporter 4.5.3-4.8.2 (691c927), `etc/default-counters.csv`; the units, and the names used since 4.6, are from DCGM 4.6.1, `dcgm_fields.h` of go-dcgm b7fa315";

/// Number of bytes in a MiB, the unit of framebuffer sizes.
const MIB: f64 = 1_048_576.0;

const SERIES: &[Source] = &[
    scaled("gpu_utilization", "DCGM_FI_DEV_GPU_UTIL", 0.01),
    scaled("gpu_memory_used", "DCGM_FI_DEV_FB_USED", MIB),
    scaled("gpu_memory_total", "DCGM_FI_DEV_FB_TOTAL", MIB),
    // By default, DCGM exports only the parts of the total: free, used and reserved memory.
    scaled("gpu_memory_total", "DCGM_FI_DEV_FB_FREE", MIB),
    Source { adds: true, ..scaled("gpu_memory_total", "DCGM_FI_DEV_FB_USED", MIB) },
    Source { adds: true, ..scaled("gpu_memory_total", "DCGM_FI_DEV_FB_RESERVED", MIB) },
    // `DCGM_FI_DEV_GPU_UTIL_RATIO`, the newer name of GPU_UTIL, is omitted, because it is not documented
    // whether it is a share or still a percentage.
    plain("gpu_memory_bandwidth_utilization", "DCGM_FI_PROF_DRAM_UTIL_RATIO"),
    plain("gpu_memory_bandwidth_utilization", "DCGM_FI_PROF_DRAM_ACTIVE"),
    plain("gpu_power_watts", "DCGM_FI_DEV_BOARD_POWER_WATTS"),
    plain("gpu_power_watts", "DCGM_FI_DEV_POWER_USAGE"),
    plain("gpu_energy_joules", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"),
    scaled("gpu_energy_joules", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 0.001),
    plain("gpu_temperature", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
    plain("gpu_temperature", "DCGM_FI_DEV_GPU_TEMP"),
    plain("gpu_sm_clock", "DCGM_FI_DEV_SM_CLOCK_HERTZ"),
    scaled("gpu_sm_clock", "DCGM_FI_DEV_SM_CLOCK", 1e6),
    plain("gpu_throttle_reasons", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
    plain("gpu_throttle_reasons", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"),
];
