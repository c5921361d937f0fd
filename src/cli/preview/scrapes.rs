//! The metrics pages that `run` would scrape during the remaining runs.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{Endpoint, GpuSource, Telemetry};
use crate::sweep::pages_of;

use super::super::workspace::Workspace;

/// The pages scraped for one endpoint.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Scrapes {
    /// The name of the endpoint.
    pub endpoint: String,
    /// The addresses of the pages. If the address of the endpoint's own page is not known yet, the list
    /// contains a description of the page instead.
    pub pages: Vec<String>,
    /// The tool that also reads the GPUs of this machine; null if none is used.
    pub gpus: Option<&'static str>,
    /// The interval between requests for each page, in seconds.
    pub every_s: f64,
}

impl Scrapes {
    /// Describes the pages in one line.
    pub(super) fn words(&self) -> String {
        let Scrapes { endpoint, pages, gpus, every_s } = self;
        let gpus = gpus.map(|source| format!(", GPUs of this machine ({source})")).unwrap_or_default();
        format!("{endpoint}: {}{gpus} every {every_s} s", pages.join(", "))
    }
}

/// Returns the pages of each endpoint with runs at these positions of the expansion, in plan order.
pub(super) fn scrapes(workspace: &Workspace, todo: &HashSet<usize>) -> Vec<Scrapes> {
    let used: HashSet<&str> = todo.iter().map(|at| &*workspace.expansion.runs[*at].spec.endpoint.name).collect();
    let scraped = |(name, endpoint): (&String, &Endpoint)| {
        let telemetry: &Telemetry = endpoint.telemetry.as_ref().filter(|_| used.contains(name.as_str()))?;
        let pages = pages_of(telemetry, endpoint);
        let gpus = endpoint.gpu_source().map(GpuSource::name);
        Some(Scrapes { endpoint: name.clone(), pages, gpus, every_s: telemetry.every().secs() })
    };
    workspace.plan().endpoints.iter().filter_map(scraped).collect()
}
