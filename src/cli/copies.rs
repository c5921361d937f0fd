//! Distinguishes a copy of shared results from a results folder.

use std::fs;
use std::path::Path;

/// The file in a copy that contains the address of the shared results.
pub(super) const ADDRESS: &str = "address";

/// If `dir` is a copy of shared results, returns their address; `None` if it is an ordinary results
/// folder.
pub(super) fn copy_of(dir: &Path) -> Option<String> {
    fs::read_to_string(dir.join(ADDRESS)).ok().map(|text| text.trim().to_owned())
}
