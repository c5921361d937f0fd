//! An entry after its shape has been applied.

use crate::dataset::record::Record;

/// A record whose time is still as in the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::dataset) struct Draft {
    /// The record; its line and offset are not set.
    pub(in crate::dataset) record: Record,
    /// The time of the record, in nanoseconds since an origin that all entries of the file share.
    pub(in crate::dataset) time: Option<i64>,
}
