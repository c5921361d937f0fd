//! Checks whether a server is still the one on which earlier results were measured, and whether an endpoint
//! has only one server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::expand::{PlannedRun, RunSpec};
use crate::rows::{Changed, Fingerprint, same_release};
use crate::server::SelfDescription;

/// Returns why a server cannot be the declared server: it reports a different version from the one
/// in the plan. `None` if the versions match, if the server reports no version, or if its engine is
/// not the declared one.
pub(crate) fn contradiction(spec: &RunSpec, said: &SelfDescription) -> Option<String> {
    let (declared, told) = (spec.endpoint.server.get("version")?.to_string(), said.version.as_ref()?);
    if said.is_another_than(spec.endpoint.engine) || same_release(&declared, told) {
        return None;
    }
    let name = &spec.endpoint.name;
    Some(format!(
        "the server reports version {told}, but `endpoints.{name}.server.version` declares {declared}; correct the \
         plan, or start the declared version"
    ))
}

/// Returns what has changed on the server since the run was committed. `was` is the fingerprint in the
/// run's record.
pub(crate) fn changed(run: &PlannedRun, was: &Fingerprint, said: &SelfDescription) -> Vec<Changed> {
    was.changed(&said.of_model(&run.spec.model.id))
}

/// Formats changes as the reason for repeating a run: `the server reports version 0.11.1 instead of
/// 0.11.0`.
pub(crate) fn in_words(changed: &[Changed]) -> String {
    let parts: Vec<String> = changed.iter().map(ToString::to_string).collect();
    format!("the server reports {}", parts.join(", "))
}

/// The expected properties of the servers of a sweep.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    /// With `environment: pin`: positions of runs in the plan, with the fingerprints in their committed
    /// results.
    pub(crate) pinned: Vec<(usize, Fingerprint)>,
    /// For each endpoint: the version that its server reported before the sweep.
    pub(crate) versions: HashMap<String, String>,
}

/// A launched server's description of itself, which it returned when it was ready.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LaunchedSaid {
    /// The spec of a run for which the server was launched.
    pub(crate) spec: Arc<RunSpec>,
    /// The server's description of itself.
    pub(crate) said: SelfDescription,
}

impl LaunchedSaid {
    /// Whether a run with `spec` would be measured on this server, that is, on the same endpoint, started
    /// with the same command and environment.
    pub(crate) fn is_of(&self, spec: &RunSpec) -> bool {
        is_same_server(&self.spec, spec)
    }
}

/// Whether runs of the two specs are measured on the same server. An endpoint has a separate server for
/// each setting with which it is launched.
fn is_same_server(one: &RunSpec, other: &RunSpec) -> bool {
    one.endpoint.name == other.endpoint.name
        && match (&one.endpoint.launch, &other.endpoint.launch) {
            (Some(one), Some(other)) => one.is_like(other),
            (None, None) => true,
            _ => false,
        }
}

/// Records what servers report about themselves in one invocation, and refuses servers that are not as
/// expected.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    expected: Expected,
    refused: HashSet<String>,
    /// The reports of launched servers, one entry for each start.
    launched: Vec<LaunchedSaid>,
}

impl Guard {
    /// Creates a guard with these expectations.
    pub(crate) fn new(expected: Expected) -> Guard {
        Guard { expected, refused: HashSet::new(), launched: Vec::new() }
    }

    /// Records what the server of an endpoint reports. Fails with the reason if the endpoint is refused:
    /// the server reported another release before, or differs from the servers that were pinned for `runs`.
    /// `launched` is the spec of a run for which the server was launched; `None` if the plan does not
    /// launch it.
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

    /// Takes the reports of launched servers, one entry for each start.
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

    /// Forgets the version of an endpoint. Called when another server is started for the endpoint, because
    /// its version may differ.
    pub(crate) fn forget(&mut self, endpoint: &str) {
        self.expected.versions.remove(endpoint);
    }

    /// Refuses further measurements on the endpoint.
    pub(crate) fn refuse(&mut self, endpoint: &str) {
        self.refused.insert(endpoint.to_owned());
    }

    /// Whether further measurements on the endpoint are refused.
    pub(crate) fn refuses(&self, endpoint: &str) -> bool {
        self.refused.contains(endpoint)
    }
}

/// Returns the error with which a sweep with `environment: pin` ends if a server has changed.
pub(crate) fn pin_broken(endpoint: &str, changed: &Changed) -> String {
    let Changed { what, was, is } = changed;
    format!(
        "endpoint `{endpoint}` reports {what} {is}, but its results were measured on {was}, and the plan sets \
         `environment: pin`: start {was} again, choose another results folder, or write `environment: match` to \
         measure those runs again"
    )
}

/// Returns the reason why an endpoint that reported two versions is no longer measured.
pub(crate) fn two_versions(endpoint: &str, one: &str, other: &str) -> String {
    format!(
        "endpoint `{endpoint}` reports two versions: {one} and {other}; its runs could not be attributed to either: \
         let only one version respond there, or declare a separate endpoint for each"
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
            "a server without a version does not contradict"
        );
        assert_eq!(guard.take("b", None, &said("0.12.0"), &[]), Ok(()));
        let reason = guard.take("a", None, &said("0.11.1"), &[]).unwrap_err();
        assert!(reason.starts_with("endpoint `a` reports two versions: 0.11.0 and 0.11.1; "), "{reason}");
        assert!(guard.refuses("a") && !guard.refuses("b"));
    }

    #[test]
    fn what_was_said_before_the_sweep_counts() {
        let versions = HashMap::from([("a".to_owned(), "0.11.0".to_owned())]);
        let mut guard = Guard::new(Expected { versions, pinned: Vec::new() });
        assert!(guard.take("a", None, &said("0.11.1"), &[]).is_err());
    }
}
