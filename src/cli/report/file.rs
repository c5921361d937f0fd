//! A file of the report, in its place when it is whole.

use std::path::Path;

use crate::cli::failure::Failure;
use crate::cli::replace::{cannot_write, replace};

/// Writes a file under its name when all of it is there.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace(path, |out| out.write_all(bytes)).map_err(|error| cannot_write(Some(path), &error))
}
