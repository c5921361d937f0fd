//! Whether a server is still the one that its results were measured on, and whether it is one server at all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

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

/// What a launched server said of itself when it was ready.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LaunchedSaid {
    /// A run that it was launched for.
    pub(crate) spec: Arc<RunSpec>,
    /// What it said.
    pub(crate) said: SelfDescription,
}

impl LaunchedSaid {
    /// Whether `spec` would be measured on that server: on the same endpoint, started with the same command and environment.
    pub(crate) fn is_of(&self, spec: &RunSpec) -> bool {
        is_same_server(&self.spec, spec)
    }
}

/// Whether the runs of two specs are measured on one server: an endpoint has one, but for each setting that it is launched with.
fn is_same_server(one: &RunSpec, other: &RunSpec) -> bool {
    one.endpoint.name == other.endpoint.name
        && match (&one.endpoint.launch, &other.endpoint.launch) {
            (Some(one), Some(other)) => one.is_like(other),
            (None, None) => true,
            _ => false,
        }
}

/// Keeps what servers say in one invocation, and refuses those that are not the expected ones.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    expected: Expected,
    refused: HashSet<String>,
    /// What launched servers said, a word for each start.
    launched: Vec<LaunchedSaid>,
}

impl Guard {
    /// For a sweep that expects this.
    pub(crate) fn new(expected: Expected) -> Guard {
        Guard { expected, refused: HashSet::new(), launched: Vec::new() }
    }

    /// Takes what the server of an endpoint says; why the endpoint is refused, where it said another release before, or where what it
    /// is differs from what `runs` pin. `launched` is a run that the server was launched for, where it was.
    pub(crate) fn take(
        &mut self,
        endpoint: &str,
        launched: Option<&Arc<RunSpec>>,
        said: &SelfDescription,
        runs: &[PlannedRun],
    ) -> Result<(), String> {
        let is_asked = |run: &RunSpec| match launched {
            Some(spec) => is_same_server(spec, run),
            None => run.endpoint.name == endpoint,
        };
        let wrong = self.other_version(endpoint, said).or_else(|| self.not_pinned(endpoint, said, runs, &is_asked));
        if let Some(reason) = wrong {
            self.refuse(endpoint);
            return Err(reason);
        }
        if let Some(spec) = launched {
            self.launched.push(LaunchedSaid { spec: Arc::clone(spec), said: said.clone() });
        }
        Ok(())
    }

    /// What launched servers said, a word for each start.
    pub(crate) fn launched(&mut self) -> Vec<LaunchedSaid> {
        std::mem::take(&mut self.launched)
    }

    fn other_version(&mut self, endpoint: &str, said: &SelfDescription) -> Option<String> {
        let version = said.version.as_ref()?;
        let before = self.expected.versions.entry(endpoint.to_owned()).or_insert_with(|| version.clone());
        (!same_release(before, version)).then(|| two_versions(endpoint, before, version))
    }

    fn not_pinned(
        &self,
        endpoint: &str,
        said: &SelfDescription,
        runs: &[PlannedRun],
        is_asked: &dyn Fn(&RunSpec) -> bool,
    ) -> Option<String> {
        let pinned = self.expected.pinned.iter().map(|(at, was)| (&runs[*at], was));
        let mut pinned = pinned.filter(|(run, _)| is_asked(&run.spec));
        let changed = pinned.find_map(|(run, was)| changed(run, was, said).into_iter().next())?;
        Some(pin_broken(endpoint, &changed))
    }

    /// Another server is started for the endpoint, which may well be of another version.
    pub(crate) fn forget(&mut self, endpoint: &str) {
        self.expected.versions.remove(endpoint);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(version: &str) -> SelfDescription {
        let mut said = SelfDescription::default();
        said.version = Some(version.to_owned());
        said
    }

    #[test]
    fn a_second_release_refuses_the_endpoint_and_no_other() {
        let mut guard = Guard::new(Expected::default());
        assert_eq!(guard.take("a", None, &said("0.11.0"), &[]), Ok(()));
        assert_eq!(guard.take("a", None, &said("v0.11.0+cu128"), &[]), Ok(()));
        assert_eq!(
            guard.take("a", None, &SelfDescription::default(), &[]),
            Ok(()),
            "who says nothing says no other version"
        );
        assert_eq!(guard.take("b", None, &said("0.12.0"), &[]), Ok(()));
        let reason = guard.take("a", None, &said("0.11.1"), &[]).unwrap_err();
        assert!(reason.starts_with("endpoint `a` answers with two versions: 0.11.0 and 0.11.1; "), "{reason}");
        assert!(guard.refuses("a") && !guard.refuses("b"));
    }

    #[test]
    fn what_was_said_before_the_sweep_counts() {
        let versions = HashMap::from([("a".to_owned(), "0.11.0".to_owned())]);
        let mut guard = Guard::new(Expected { versions, pinned: Vec::new() });
        assert!(guard.take("a", None, &said("0.11.1"), &[]).is_err());
    }
}
