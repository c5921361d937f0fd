//! Whether a server is still the one that its results were measured on, and whether it is one server at all.

use std::collections::{HashMap, HashSet};

use crate::expand::{PlannedRun, RunSpec};
use crate::rows::{Changed, Fingerprint, same_release};
use crate::server::SelfDescription;

/// Why a server cannot be the declared one: it says another version. None where it says none, or where the version is another
/// program's than the declared engine's.
pub(crate) fn contradiction(spec: &RunSpec, said: &SelfDescription) -> Option<String> {
    let (declared, told) = (spec.endpoint.server.get("version")?.to_string(), said.version.as_ref()?);
    if said.is_another_than(spec.endpoint.engine) || same_release(&declared, told) {
        return None;
    }
    let name = &spec.endpoint.name;
    Some(format!(
        "the server says that it is version {told}, and `endpoints.{name}.server.version` declares {declared}; correct the plan, or \
         start the declared version"
    ))
}

/// What of the server of a committed run is otherwise now; `was` is what the run recorded.
pub(crate) fn changed(run: &PlannedRun, was: &Fingerprint, said: &SelfDescription) -> Vec<Changed> {
    was.changed(&said.of_model(&run.spec.model.id))
}

/// Changes as the reason of a run: `the server says version 0.11.1 instead of 0.11.0`.
pub(crate) fn in_words(changed: &[Changed]) -> String {
    let parts: Vec<String> = changed.iter().map(ToString::to_string).collect();
    format!("the server says {}", parts.join(", "))
}

/// What a sweep expects of its servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    /// With `environment: pin`: runs by their positions, with what their committed results recorded.
    pub(crate) pinned: Vec<(usize, Fingerprint)>,
    /// The versions that endpoints said before the sweep.
    pub(crate) versions: HashMap<String, String>,
}

/// Keeps what servers say in one invocation, and refuses those that are not the expected ones.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    expected: Expected,
    refused: HashSet<String>,
}

impl Guard {
    /// For a sweep that expects this.
    pub(crate) fn new(expected: Expected) -> Guard {
        Guard { expected, refused: HashSet::new() }
    }

    /// Takes what the server of an endpoint says; why the endpoint is refused, where it said another release before, or where what it
    /// is differs from what `runs` pin.
    pub(crate) fn take(&mut self, endpoint: &str, said: &SelfDescription, runs: &[PlannedRun]) -> Result<(), String> {
        let wrong = self.other_version(endpoint, said).or_else(|| self.not_pinned(endpoint, said, runs));
        match wrong {
            Some(reason) => {
                self.refuse(endpoint);
                Err(reason)
            }
            None => Ok(()),
        }
    }

    fn other_version(&mut self, endpoint: &str, said: &SelfDescription) -> Option<String> {
        let version = said.version.as_ref()?;
        let before = self.expected.versions.entry(endpoint.to_owned()).or_insert_with(|| version.clone());
        (!same_release(before, version)).then(|| two_versions(endpoint, before, version))
    }

    fn not_pinned(&self, endpoint: &str, said: &SelfDescription, runs: &[PlannedRun]) -> Option<String> {
        let pinned = self.expected.pinned.iter().map(|(at, was)| (&runs[*at], was));
        let mut pinned = pinned.filter(|(run, _)| run.spec.endpoint.name == endpoint);
        let changed = pinned.find_map(|(run, was)| changed(run, was, said).into_iter().next())?;
        Some(pin_broken(endpoint, &changed))
    }

    /// Nothing more is measured on the endpoint.
    pub(crate) fn refuse(&mut self, endpoint: &str) {
        self.refused.insert(endpoint.to_owned());
    }

    /// Whether nothing more is measured on the endpoint.
    pub(crate) fn refuses(&self, endpoint: &str) -> bool {
        self.refused.contains(endpoint)
    }
}

/// What ends a sweep whose plan says `environment: pin`.
pub(crate) fn pin_broken(endpoint: &str, changed: &Changed) -> String {
    let Changed { what, was, is } = changed;
    format!(
        "endpoint `{endpoint}` says {what} {is}, and its results were measured on {was}; the plan says `environment: pin`: start {was} \
         again, name another results folder, or write `environment: match` to measure those runs again"
    )
}

/// Why nothing more is measured on an endpoint that said two versions.
pub(crate) fn two_versions(endpoint: &str, one: &str, other: &str) -> String {
    format!(
        "endpoint `{endpoint}` answers with two versions: {one} and {other}; no run on it could be called one of them: let only one \
         version answer there, or give each an endpoint of its own"
    )
}
