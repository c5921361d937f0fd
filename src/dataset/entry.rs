//! One entry of a file.

use super::error::Bad;
use super::record::Place;
use super::value::Fields;

/// One entry: its place, and its fields.
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) fields: Result<Fields, Bad>,
}
