//! The type of one entry of a file.

use super::error::Bad;
use super::record::Place;
use super::value::Fields;

/// One entry of a file: its place, and its fields or why they cannot be read.
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) fields: Result<Fields, Bad>,
}
