//! Names of objects.

use super::super::layout::is_short_id;

/// Returns the name of a run's commit.
pub(super) fn commit_of(id: &str) -> String {
    format!("{id}.json")
}

/// Returns the short id in the name of a commit; `None` for any other name.
pub(super) fn run_of(name: &str) -> Option<&str> {
    name.strip_suffix(".json").filter(|id| is_short_id(id))
}

/// Returns the name of a `run.json` that was committed too late.
pub(super) fn attempt_of(id: &str, digest: &str) -> String {
    format!("{id}.{digest}.json")
}
