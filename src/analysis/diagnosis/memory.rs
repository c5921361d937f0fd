//! How busy a GPU's memory was, beside what its bandwidth allows.

use crate::analysis::curve::Run;

use super::scraped::figure;

/// Memory that moves data for a smaller share of the time is not what limits decoding; one that does for a larger share is.
/// Both are chosen, not measured.
const IDLE: f64 = 0.3;
const BUSY: f64 = 0.6;

/// The share of the window in which the memory moved data; none where the run does not have it.
pub fn busy(run: &Run) -> Option<f64> {
    figure(run, "gpu_memory_bandwidth_utilization_mean")
}

/// A clause on it; empty where it is not known.
pub(super) fn clause(run: &Run) -> String {
    busy(run)
        .map(|share| format!("; the GPU's memory moves data {:.0} % of the time", share * 100.0))
        .unwrap_or_default()
}

/// The same beside decoding that is far below what bandwidth allows, with what that says of the cause.
pub(super) fn beside_overhead(run: &Run) -> String {
    let says = match busy(run) {
        Some(share) if share < IDLE => ", which confirms that its bandwidth is not the limit",
        Some(share) if share >= BUSY => ", which speaks against overhead: more is read than is declared",
        Some(_) => ", which tells neither way",
        None => return String::new(),
    };
    clause(run) + says
}
