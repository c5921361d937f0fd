//! Distinguishes a local copy of shared results from an ordinary results folder.

use std::path::Path;

use crate::units::regular_file;

/// The file in a copy that contains the address of the shared results.
pub(super) const ADDRESS: &str = "address";

/// Maximum size of that file, in bytes.
const LONGEST: u64 = 64 << 10;

/// If `dir` is a copy of shared results, returns their address; `None` if it is an ordinary results
/// folder.
pub(super) fn copy_of(dir: &Path) -> Option<String> {
    regular_file::read_text(&dir.join(ADDRESS), LONGEST).ok().map(|text| text.trim().to_owned())
}
