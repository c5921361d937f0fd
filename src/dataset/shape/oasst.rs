//! Reads OpenAssistant message trees (oasst1, oasst2). Each tree becomes one conversation, which follows
//! the best-ranked replies.
//!
//! From the prompt on, the conversation continues with the reply that has the lowest `rank` (0 is the
//! best). Replies without a rank, such as most user messages, come after replies with a rank, in the order
//! of the file. Deleted replies are skipped. The conversation ends at a message without replies.

use serde_json::Value;

use crate::dataset::error::Bad;
use crate::dataset::record::{Record, Role, Turn};
use crate::dataset::skipped::Reason;
use crate::dataset::value::{Fields, get, label, need, shown, text, wrong};

use super::draft::Draft;
use super::messages;

pub(super) fn read(fields: &Fields) -> Result<Draft, Bad> {
    let id = label("message_tree_id", need(fields, "message_tree_id")?)?;
    let mut at = object("prompt", need(fields, "prompt")?)?;
    let language = get(at, "lang").map(|lang| text("lang", lang).map(str::to_owned)).transpose()?;
    let mut turns = Vec::new();
    loop {
        let role = match text("role", need(at, "role")?)? {
            "prompter" => Role::User,
            "assistant" => Role::Assistant,
            other => {
                let text = format!("the role `{}` is unknown (known: prompter, assistant)", shown(other));
                return Err(Bad::new(Reason::WrongValue, text));
            }
        };
        turns.push(Turn { role, text: text("text", need(at, "text")?)?.to_owned() });
        match best(at)? {
            Some(reply) => at = reply,
            None => break,
        }
    }
    let record = Record { id: Some(id), turns: messages::regular(turns), language, ..Record::default() };
    Ok(Draft { record, time: None })
}

/// Returns the reply that continues the conversation; `None` if there is none.
fn best(message: &Fields) -> Result<Option<&Fields>, Bad> {
    let Some(replies) = get(message, "replies") else { return Ok(None) };
    let replies = replies.as_array().ok_or_else(|| wrong("replies", replies, "a list of messages"))?;
    let mut best: Option<(f64, &Fields)> = None;
    for reply in replies {
        let reply = object("a reply", reply)?;
        if get(reply, "deleted").is_some_and(|deleted| deleted == &Value::Bool(true)) {
            continue;
        }
        let rank = match get(reply, "rank") {
            Some(rank) => rank.as_f64().ok_or_else(|| wrong("rank", rank, "a number"))?,
            None => f64::INFINITY,
        };
        if best.is_none_or(|(least, _)| rank < least) {
            best = Some((rank, reply));
        }
    }
    Ok(best.map(|(_, reply)| reply))
}

fn object<'a>(name: &str, value: &'a Value) -> Result<&'a Fields, Bad> {
    value.as_object().ok_or_else(|| wrong(name, value, "an object"))
}
