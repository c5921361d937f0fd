//! Which pages of metrics are scraped beside the runs to do.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{Endpoint, GpuSource, Telemetry};
use crate::sweep::pages_of;

use super::super::workspace::Workspace;

/// What is scraped of one endpoint.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Scrapes {
    /// The endpoint.
    pub endpoint: String,
    /// The pages; where the endpoint's own has no address yet, what it is.
    pub pages: Vec<String>,
    /// What reads the GPUs of this machine beside them; null where nothing does.
    pub gpus: Option<&'static str>,
    /// How often each is asked for, in seconds.
    pub every_s: f64,
}

impl Scrapes {
    /// In one line.
    pub(super) fn words(&self) -> String {
        let Scrapes { endpoint, pages, gpus, every_s } = self;
        let gpus = gpus.map(|source| format!(", GPUs of this machine ({source})")).unwrap_or_default();
        format!("{endpoint}: {}{gpus} every {every_s} s", pages.join(", "))
    }
}

/// The pages of each endpoint with runs at these positions of the expansion, in the order of the plan.
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
