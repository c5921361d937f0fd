//! An entry whose fields were interpreted according to its format.

use crate::dataset::record::Record;

/// An incomplete record: its time is still relative to the origin of the file's times.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::dataset) struct Draft {
    /// The record; its place and offset are not set.
    pub(in crate::dataset) record: Record,
    /// The time of the record, in nanoseconds since an origin that all entries of the file share; `None`
    /// without a time.
    pub(in crate::dataset) time: Option<i64>,
}
