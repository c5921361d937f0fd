//! What was scraped of a server beside a run, as a whole; the values are in the samples.

use serde::{Deserialize, Serialize};

/// What was scraped beside a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// The pages, as they may be shown; samples name them by their place.
    pub urls: Vec<String>,
    /// Whose histograms of a server each page has, as `docs/TELEMETRY.md` calls the exporter; null where a page has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exporters: Vec<Option<String>>,
    /// How often each was asked for, in nanoseconds.
    pub every_ns: u64,
    /// Scrapes of all pages together.
    pub scrapes: u64,
    /// Those of them that failed.
    pub gaps: u64,
    /// The first of them, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_gap: Option<String>,
    /// Generations that sweepline itself asked for while the run went on, beside its requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probes: u64,
    /// What the server counted from just before the load to the end of drain.
    pub counted: Counted,
    /// What was read of the GPUs of this machine; none where they were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<GpuReadings>,
}

/// What was read of the GPUs of the machine that sweepline runs on, beside their samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuReadings {
    /// Their place among `urls`.
    pub page: u32,
    /// Readings that told the processes on them.
    pub readings: u64,
    /// Processes on them that are not the server's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherProcess>,
    /// Why others cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// A process on a GPU that is not the server's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Its number.
    pub pid: u32,
    /// What its program is called; empty where that was not to be seen.
    pub name: String,
    /// How many readings found it.
    pub readings: u64,
}

impl Telemetry {
    /// Notes whose histograms the page of this place has.
    pub fn note(&mut self, page: usize, exporter: Option<&str>) {
        let Some(exporter) = exporter else { return };
        if self.exporters.len() <= page {
            self.exporters.resize(self.urls.len().max(page + 1), None);
        }
        self.exporters[page].get_or_insert_with(|| exporter.to_owned());
    }
}

/// What a server counted over a whole run. None: its pages do not say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Requests that it answered to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<f64>,
    /// Requests that it gave up, or that their clients did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<f64>,
    /// Tokens that it generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation_tokens: Option<f64>,
    /// Why nothing can be said: the first or the last scrape failed, or a counter fell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// That a counter fell under way: the server was started again, or another one answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
