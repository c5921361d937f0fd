//! How often a sweep starts the servers that the plan launches, and how long that takes.

use std::collections::HashSet;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::expand::LaunchSpec;
use crate::report::format::{digits, duration};
use crate::units::text::counted;

use super::super::estimate::Start;
use super::super::workspace::Workspace;

/// The starts of one endpoint's servers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Starts {
    /// The name of the endpoint.
    pub endpoint: String,
    /// How often a server of the endpoint is started for the runs to do.
    pub starts: usize,
    /// Number of distinct servers that are started. This many starts would be enough without the rounds
    /// of comparisons and without sweeps that wait for others.
    pub servers: usize,
    /// The median duration of a start in earlier results of the endpoint, in seconds, until the server had
    /// returned its first response; null if there are no earlier results.
    pub seconds_each: Option<f64>,
    /// The number of earlier starts on which the median is based.
    pub earlier: usize,
}

/// Returns the starts that are needed for the runs at these positions of the expansion, by endpoint; empty
/// if nothing is launched.
pub(super) fn starts(workspace: &Workspace, todo: &HashSet<usize>, all: &[Start]) -> Vec<Starts> {
    let expansion = &workspace.expansion;
    let mut counts: IndexMap<&str, usize> = IndexMap::new();
    for start in all {
        *counts.entry(expansion.runs[start.run].spec.endpoint.name.as_str()).or_default() += 1;
    }
    let of_endpoint = |(endpoint, starts): (&str, usize)| {
        let specs = todo.iter().map(|at| &expansion.runs[*at].spec).filter(|spec| spec.endpoint.name == endpoint);
        // A run that measures a start needs its own start, and so does each run of an endpoint that is
        // restarted for every run.
        let (starts_measured, loads): (Vec<_>, Vec<_>) = specs.partition(|spec| spec.start || spec.endpoint.restarts());
        let servers: HashSet<&LaunchSpec> = loads.iter().filter_map(|spec| spec.endpoint.launch.as_ref()).collect();
        let earlier = workspace.disk.history().starts(endpoint);
        Starts {
            endpoint: endpoint.to_owned(),
            starts,
            servers: servers.len() + starts_measured.len(),
            seconds_each: earlier.get(earlier.len() / 2).copied(),
            earlier: earlier.len(),
        }
    };
    counts.into_iter().map(of_endpoint).collect()
}

/// Formats a time in seconds, with decimals if it is below 10 seconds.
fn time_of(seconds: f64) -> String {
    if seconds < 10.0 { format!("{} s", digits(seconds)) } else { duration(seconds.ceil() as u64) }
}

impl Starts {
    /// Describes the starts in one line.
    pub(super) fn words(&self) -> String {
        let Starts { endpoint, starts, servers, seconds_each, earlier } = self;
        let time = match seconds_each {
            None => "not yet measured".to_owned(),
            Some(each) => format!(
                "about {} in total, {} each as in {}",
                time_of(each * *starts as f64),
                time_of(*each),
                counted(*earlier, "earlier start")
            ),
        };
        let fewer = match starts > servers {
            true => format!(
                "; {servers} would be enough without the rounds of comparisons and without sweeps that \
                             wait for others"
            ),
            false => String::new(),
        };
        format!("{} of {endpoint}: {time}{fewer}", counted(*starts, "start"))
    }
}
