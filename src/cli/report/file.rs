//! A file of the report, put in place once it is complete.

use std::path::Path;

use crate::cli::failure::Failure;
use crate::cli::replace::{cannot_write, replace};

/// Writes a file under its name once all of it is written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace(path, |out| out.write_all(bytes)).map_err(|error| cannot_write(Some(path), &error))
}
