//! Reads ShareGPT: `{id, conversations: [{from: human, value}, {from: gpt, value}, …]}`.

use crate::dataset::error::Bad;
use crate::dataset::record::Record;
use crate::dataset::value::{Fields, get, label};

use super::draft::Draft;
use super::messages;

pub(super) fn read(fields: &Fields) -> Result<Draft, Bad> {
    let id = get(fields, "id").map(|id| label("id", id)).transpose()?;
    let turns = messages::read(fields, "conversations")?;
    Ok(Draft { record: Record { id, turns, ..Record::default() }, time: None })
}
