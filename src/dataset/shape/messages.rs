//! Reads lists of messages, as in conversations of every kind.

use serde_json::Value;

use crate::dataset::error::Bad;
use crate::dataset::record::{Role, Turn};
use crate::dataset::skipped::Reason;
use crate::dataset::value::{Fields, get, need, shown, text, wrong};

/// Returns the role for a speaker's name.
fn role(name: &str, turn: usize) -> Result<Role, Bad> {
    Ok(match name {
        "human" | "user" | "prompter" => Role::User,
        "gpt" | "assistant" | "model" | "chatgpt" | "bing" | "bard" => Role::Assistant,
        "system" | "developer" => Role::System,
        other => {
            let other = shown(other);
            let text = format!(
                "the role `{other}` of message {turn} is unknown (known: human or user, gpt or assistant, system)"
            );
            return Err(Bad::new(Reason::WrongValue, text));
        }
    })
}

/// Returns the messages of the list at `name`.
pub(super) fn read(fields: &Fields, name: &str) -> Result<Vec<Turn>, Bad> {
    let list = need(fields, name)?;
    let list = list.as_array().ok_or_else(|| wrong(name, list, "a list of messages"))?;
    let turns = list.iter().enumerate().map(|(at, message)| one(message, at + 1));
    Ok(regular(turns.collect::<Result<_, _>>()?))
}

/// Parses one message: `{from, value}` or `{role, content}`.
fn one(message: &Value, turn: usize) -> Result<Turn, Bad> {
    let fields = message.as_object().ok_or_else(|| wrong(&format!("message {turn}"), message, "an object"))?;
    let either = |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, get(fields, name)?)));
    let lacks = |what: &str| Bad::new(Reason::Missing, format!("message {turn} has no {what}"));
    let (name, value) = either(["from", "role"]).ok_or_else(|| lacks("`from` or `role`"))?;
    let role = role(text(name, value)?, turn)?;
    let (name, value) = either(["value", "content"]).ok_or_else(|| lacks("`value` or `content`"))?;
    Ok(Turn { role, text: content(&format!("{name} of message {turn}"), value)? })
}

/// Parses a content: text, or a list of parts of which only those with text count.
fn content(name: &str, value: &Value) -> Result<String, Bad> {
    match value {
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part.get("text") {
                Some(Value::String(text)) => Ok(text.as_str()),
                _ => Err(wrong(name, value, "text, or a list of parts with text")),
            });
            Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        other => text(name, other).map(str::to_owned),
    }
}

/// Returns the turns in the order that servers require: a system message first, then user and assistant
/// alternately, beginning with the user.
///
/// Public files contain conversations that were split, so messages of the model before the first question
/// are skipped. Consecutive messages of one side are joined, with a blank line between them, and so are
/// system messages at any position. Messages without text are skipped.
pub(super) fn regular(turns: Vec<Turn>) -> Vec<Turn> {
    let (system, said): (Vec<Turn>, Vec<Turn>) =
        turns.into_iter().filter(|turn| !turn.text.trim().is_empty()).partition(|turn| turn.role == Role::System);
    let said = said.into_iter().skip_while(|turn| turn.role == Role::Assistant);
    let mut regular: Vec<Turn> = Vec::new();
    for turn in system.into_iter().chain(said) {
        match regular.last_mut() {
            Some(last) if last.role == turn.role => {
                last.text.push_str("\n\n");
                last.text.push_str(&turn.text);
            }
            _ => regular.push(turn),
        }
    }
    regular
}
