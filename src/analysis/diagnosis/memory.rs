//! How busy a GPU's memory was, compared with what its bandwidth allows.

use crate::analysis::curve::Run;

use super::scraped::figure;

/// Memory that moves data for less than the share `IDLE` of the time does not limit decoding; memory that
/// moves data for at least the share `BUSY` of the time does. Both thresholds are chosen, not measured.
const IDLE: f64 = 0.3;
const BUSY: f64 = 0.6;

/// Returns the share of the window in which the memory moved data; `None` if the run has no such figure.
pub fn busy(run: &Run) -> Option<f64> {
    figure(run, "gpu_memory_bandwidth_utilization_mean")
}

/// Returns a clause with the share of the time in which the memory moved data; empty if the share is unknown.
pub(super) fn clause(run: &Run) -> String {
    busy(run)
        .map(|share| format!("; the GPU's memory moves data {:.0} % of the time", share * 100.0))
        .unwrap_or_default()
}

/// Returns the clause for decoding far below the bandwidth bound, with the conclusion about the cause.
pub(super) fn beside_overhead(run: &Run) -> String {
    let says = match busy(run) {
        Some(share) if share < IDLE => ", which confirms that its bandwidth is not the limit",
        Some(share) if share >= BUSY => ", which contradicts overhead: more is read than declared",
        Some(_) => ", which is inconclusive",
        None => return String::new(),
    };
    clause(run) + says
}
