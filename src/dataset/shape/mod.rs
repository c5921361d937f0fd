//! Interprets the fields of entries, with one module per format.

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

/// Interprets the fields of an entry in a known format.
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

/// Returns the fields that identify a format. Every entry in the format must have them.
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

/// Optional fields that are read in some of the formats.
pub(super) const ALSO: [&str; 3] = ["_id", "Session ID", "lang"];
