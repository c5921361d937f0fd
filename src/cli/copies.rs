//! How a copy of shared results is told from a results folder.

use std::fs;
use std::path::Path;

/// The file in a copy that says of what it is one.
pub(super) const ADDRESS: &str = "address";

/// Of what the folder `dir` is a copy; none where it is a results folder of its own.
pub(super) fn copy_of(dir: &Path) -> Option<String> {
    fs::read_to_string(dir.join(ADDRESS)).ok().map(|text| text.trim().to_owned())
}
