//! Names of the objects for commits.

use super::super::layout::is_short_id;

/// Returns the name of the object that commits a run.
pub(super) fn commit_of(id: &str) -> String {
    format!("{id}.json")
}

/// Returns the run's short id in the name of a commit object; `None` for any other name.
pub(super) fn run_of(name: &str) -> Option<&str> {
    name.strip_suffix(".json").filter(|id| is_short_id(id))
}

/// Returns the name of the object for a `run.json` whose run another worker had already committed.
pub(super) fn attempt_of(id: &str, digest: &str) -> String {
    format!("{id}.{digest}.json")
}
