//! Reads fields by name, in any file with one object or row per request, and in sweepline's own
//! format.

use crate::dataset::error::Bad;
use crate::dataset::mapping::{Field, Mapping};
use crate::dataset::record::{BLOCK_TOKENS, Record, Role, Turn};
use crate::dataset::skipped::Reason;
use crate::dataset::value::{Fields, count, instant, label, text};

use super::draft::Draft;
use super::{messages, trace};

pub(super) fn read(fields: &Fields, mapping: &Mapping) -> Result<Draft, Bad> {
    let named = |field: Field| mapping.get(fields, field).map(|(name, value)| label(name, value)).transpose();
    let tokens = |field: Field| mapping.get(fields, field).map(|(name, value)| count(name, value)).transpose();
    let time = mapping.get(fields, Field::Time).map(|(name, time)| instant(name, time, mapping.unit())).transpose()?;
    let hash_ids = mapping.get(fields, Field::HashIds).map(|(name, _)| trace::hash_ids(fields, name)).transpose()?;
    let record = Record {
        id: named(Field::Id)?,
        turns: turns(fields, mapping)?,
        input_tokens: tokens(Field::InputTokens)?,
        output_tokens: tokens(Field::OutputTokens)?,
        hash_ids: hash_ids.unwrap_or_default(),
        conversation: named(Field::Conversation)?,
        language: named(Field::Language)?,
        ..Record::default()
    };
    let room = record.input_tokens.unwrap_or(0).div_ceil(BLOCK_TOKENS) as usize;
    if record.hash_ids.len() > room {
        let text = format!("{} hash_ids name more blocks than the prompt's tokens fill", record.hash_ids.len());
        return Err(Bad::new(Reason::WrongValue, text));
    }
    Ok(Draft { record, time })
}

/// Returns the turns: the list of messages if there is one, otherwise system, prompt and output.
fn turns(fields: &Fields, mapping: &Mapping) -> Result<Vec<Turn>, Bad> {
    if let Some((name, _)) = mapping.get(fields, Field::Messages) {
        return messages::read(fields, name);
    }
    let parts = [(Field::System, Role::System), (Field::Prompt, Role::User), (Field::Output, Role::Assistant)];
    let mut turns = Vec::new();
    for (field, role) in parts {
        if let Some((name, value)) = mapping.get(fields, field) {
            turns.push(Turn { role, text: text(name, value)?.to_owned() });
        }
    }
    Ok(messages::regular(turns))
}
