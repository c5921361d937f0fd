//! What the fields of an entry mean: one file per shape.

pub(super) mod columns;
mod longbench;
mod messages;
mod oasst;
mod sharegpt;
mod trace;

use super::error::Bad;
use super::options::Format;
use super::record::Record;
use super::value::Fields;
use columns::Mapping;

/// A record whose time is still that of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Draft {
    /// The record; its line and offset are not set.
    pub(super) record: Record,
    /// Its time in nanoseconds since an origin that all entries of the file share.
    pub(super) time: Option<i64>,
}

/// Reads an entry of a known shape.
pub(super) fn read(format: Format, fields: &Fields, mapping: &Mapping) -> Result<Draft, Bad> {
    match format {
        Format::ShareGpt => sharegpt::read(fields),
        Format::LongBench => longbench::read(fields),
        Format::Oasst => oasst::read(fields),
        Format::Mooncake => trace::mooncake(fields),
        Format::BurstGpt => trace::burstgpt(fields),
        Format::Azure => trace::azure(fields),
        Format::Columns => columns::read(fields, mapping),
    }
}

/// The fields by which a shape is known, and which each of its entries must have.
pub(super) fn needs(format: Format) -> &'static [&'static str] {
    match format {
        Format::ShareGpt => &["conversations"],
        Format::LongBench => &["question", "choice_A", "choice_B", "choice_C", "choice_D", "context"],
        Format::Oasst => &["message_tree_id", "prompt"],
        Format::Mooncake => &["timestamp", "input_length", "output_length", "hash_ids"],
        Format::BurstGpt => &["Timestamp", "Request tokens", "Response tokens"],
        Format::Azure => &["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
        Format::Columns => &[],
    }
}

/// The fields beside those that a shape also reads.
pub(super) const ALSO: [&str; 3] = ["_id", "Session ID", "lang"];
