//! A file of the report, which is moved into place once it is complete.

use std::path::Path;

use crate::cli::failure::Failure;
use crate::cli::replace::{cannot_write, replace};

/// Writes a file that gets its final name only once it is complete.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace(path, |out| out.write_all(bytes)).map_err(|error| cannot_write(Some(path), &error))
}
