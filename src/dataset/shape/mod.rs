//! Interprets the fields of entries, with one file per shape.

mod columns;
mod draft;
mod longbench;
mod messages;
mod oasst;
mod sharegpt;
mod trace;

use super::error::Bad;
use super::mapping::Mapping;
use super::options::Format;
use super::value::Fields;

pub(super) use draft::Draft;

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

/// Returns the fields that identify a shape, which each of its entries must have.
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

/// Returns the other fields that a shape reads.
pub(super) const ALSO: [&str; 3] = ["_id", "Session ID", "lang"];
