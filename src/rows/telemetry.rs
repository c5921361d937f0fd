//! A summary of what was scraped from a server during a run; the values are in the samples.

use serde::{Deserialize, Serialize};

/// A summary of the scrapes during a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// The pages, in a form that is safe to show; samples refer to them by index.
    pub urls: Vec<String>,
    /// The exporter of the server histograms on each page, as named in `docs/TELEMETRY.md`; null if a page
    /// has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exporters: Vec<Option<String>>,
    /// Interval between scrapes of each page, in nanoseconds.
    pub every_ns: u64,
    /// Number of scrapes of all pages together.
    pub scrapes: u64,
    /// Number of failed scrapes.
    pub gaps: u64,
    /// The first failure, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_gap: Option<String>,
    /// Generations that sweepline itself requested during the run, in addition to its load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probes: u64,
    /// The server's counts over the time from just before the load to the end of drain.
    pub counted: Counted,
    /// Readings of the GPUs of this machine; null if they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<GpuReadings>,
}

/// A summary of the GPU readings of the machine that sweepline runs on; the values are in the samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuReadings {
    /// The index of the GPUs in `urls`.
    pub page: u32,
    /// Number of readings that list the processes on the GPUs.
    pub readings: u64,
    /// Processes on the GPUs that do not belong to the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherProcess>,
    /// Why other processes cannot be identified.
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
    /// Records the exporter of the histograms on the page with this index.
    pub fn note(&mut self, page: usize, exporter: Option<&str>) {
        let Some(exporter) = exporter else { return };
        if self.exporters.len() <= page {
            self.exporters.resize(self.urls.len().max(page + 1), None);
        }
        self.exporters[page].get_or_insert_with(|| exporter.to_owned());
    }
}

/// The server's counts over a whole run. Null if the server's pages do not contain them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Requests that the server completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<f64>,
    /// Requests that the server gave up, or that clients aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<f64>,
    /// Tokens that the server generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation_tokens: Option<f64>,
    /// Why the counts are unknown: the first or the last scrape failed, or a counter decreased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Whether a counter decreased during the run: the server was restarted, or another one responds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
