//! A summary of the data scraped from a server during a run. The values themselves are in the samples.

use serde::{Deserialize, Serialize};

/// A summary of a run's scrapes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// The URLs of the scraped pages, without secrets. Samples refer to a page by its index in this list.
    pub urls: Vec<String>,
    /// For each page: the exporter of its server histograms, as named in `docs/TELEMETRY.md`; null if the page
    /// has no such histograms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exporters: Vec<Option<String>>,
    /// Interval between scrapes of each page, in nanoseconds.
    pub every_ns: u64,
    /// Total number of scrapes of all pages.
    pub scrapes: u64,
    /// Number of failed scrapes.
    pub gaps: u64,
    /// The first failure of a scrape, as text; null if no scrape failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_gap: Option<String>,
    /// Number of generations that sweepline requested during the run in addition to its load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probes: u64,
    /// The increase of the server's counters from just before the load to the end of drain.
    pub counted: Counted,
    /// Readings of the GPUs of this machine; null if they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<GpuReadings>,
}

/// A summary of the GPU readings on the machine that sweepline runs on. The values themselves are in the
/// samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuReadings {
    /// The index in `urls` of the entry for the GPUs of this machine.
    pub page: u32,
    /// Number of readings that list the processes on the GPUs.
    pub readings: u64,
    /// Processes on the GPUs that do not belong to the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherProcess>,
    /// Why other processes cannot be identified; null if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// A process on a GPU that does not belong to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// The id of the process.
    pub pid: u32,
    /// The name of its program; empty if the name was not visible.
    pub name: String,
    /// Number of readings that include this process.
    pub readings: u64,
}

impl Telemetry {
    /// Records the exporter of the histograms on the page with this index, unless one is already recorded.
    pub fn note(&mut self, page: usize, exporter: Option<&str>) {
        let Some(exporter) = exporter else { return };
        if self.exporters.len() <= page {
            self.exporters.resize(self.urls.len().max(page + 1), None);
        }
        self.exporters[page].get_or_insert_with(|| exporter.to_owned());
    }
}

/// The server's counts over a whole run. A count is null if the server's pages do not contain it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Number of requests that the server completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<f64>,
    /// Number of requests that the server aborted, or that clients cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<f64>,
    /// Number of tokens that the server generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation_tokens: Option<f64>,
    /// Why the counts are unknown: the first or the last scrape failed, or a counter decreased. Null if
    /// they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Whether a counter decreased during the run, because the server was restarted or another server
    /// responded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
