//! Reads public traces, which contain arrivals and lengths of requests.

use crate::dataset::error::Bad;
use crate::dataset::record::{BLOCK_TOKENS, Record};
use crate::dataset::skipped::Reason;
use crate::dataset::value::{Fields, count, get, instant, label, need, wrong};

use super::draft::Draft;

/// Number of nanoseconds in a second and in a millisecond.
const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;

/// Reads an entry of the Mooncake trace, with a time in milliseconds since the trace's start, and an id for
/// each block of 512 prompt tokens.
pub(super) fn mooncake(fields: &Fields) -> Result<Draft, Bad> {
    let mut draft = lengths(fields, "input_length", "output_length")?;
    draft.time = Some(instant("timestamp", need(fields, "timestamp")?, MILLI)?);
    draft.record.hash_ids = hash_ids(fields, "hash_ids")?;
    let (blocks, input) = (draft.record.hash_ids.len() as u64, draft.record.input_tokens.unwrap_or(0));
    let room = u64::from(input.div_ceil(BLOCK_TOKENS));
    if blocks > room {
        let text = format!(
            "{blocks} hash_ids cover more than the {input} tokens of input_length ({room} blocks of {BLOCK_TOKENS})"
        );
        return Err(Bad::new(Reason::WrongValue, text));
    }
    Ok(draft)
}

/// Reads an entry of the BurstGPT trace, with a time in seconds since the trace's start. Some versions of the
/// trace also contain a session id.
pub(super) fn burstgpt(fields: &Fields) -> Result<Draft, Bad> {
    let mut draft = lengths(fields, "Request tokens", "Response tokens")?;
    draft.time = Some(instant("Timestamp", need(fields, "Timestamp")?, SECOND)?);
    draft.record.conversation = get(fields, "Session ID").map(|id| label("Session ID", id)).transpose()?;
    Ok(draft)
}

/// Reads an entry of an Azure trace, whose time is a date.
pub(super) fn azure(fields: &Fields) -> Result<Draft, Bad> {
    let mut draft = lengths(fields, "ContextTokens", "GeneratedTokens")?;
    draft.time = Some(instant("TIMESTAMP", need(fields, "TIMESTAMP")?, SECOND)?);
    Ok(draft)
}

fn lengths(fields: &Fields, input: &str, output: &str) -> Result<Draft, Bad> {
    let input_tokens = Some(count(input, need(fields, input)?)?);
    let output_tokens = Some(count(output, need(fields, output)?)?);
    Ok(Draft { record: Record { input_tokens, output_tokens, ..Record::default() }, time: None })
}

/// Parses the list of block names in field `name`.
pub(super) fn hash_ids(fields: &Fields, name: &str) -> Result<Vec<u64>, Bad> {
    let list = need(fields, name)?;
    let ids = list.as_array().ok_or_else(|| wrong(name, list, "a list of whole numbers"))?;
    let id = |id: &serde_json::Value| id.as_u64().ok_or_else(|| wrong(name, id, "a list of whole numbers from 0"));
    ids.iter().map(id).collect()
}
