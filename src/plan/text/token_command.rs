//! Commands that print tokens.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::units::Nanos;
use crate::units::secrecy::holds_key;
use crate::units::text::quoted;

/// A command that prints a token that expires. The command runs before runs and probes, without a shell, in the
/// plan's folder; the token is the only line that it prints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCommand {
    /// The program and its arguments, one element each, without a shell.
    #[schemars(example = serde_json::json!(["gcloud", "auth", "print-access-token"]))]
    pub command: CommandLine,
    /// How long a token is used after it was printed. Write less than the lifetime of the tokens: the lifetime
    /// minus the duration of the longest run.
    #[schemars(example = "50m")]
    pub valid: Nanos,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandLine(pub Vec<String>);

impl fmt::Display for TokenCommand {
    /// Formats the command as a user would type it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.command.0.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))
    }
}

impl CommandLine {
    /// The list that a command written as one text was meant to be, as it is written in a plan. A text that
    /// only a shell understands becomes an argument of a shell.
    pub(crate) fn list_of(text: &str) -> String {
        if text.contains(['|', '&', ';', '$', '<', '>', '`', '"', '\'', '\\', '*', '~', '(']) {
            return format!("[sh, -c, {text:?}]");
        }
        let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=+".contains(c));
        let word = |word: &str| if is_plain(word) { word.to_owned() } else { format!("{word:?}") };
        let words: Vec<String> = text.split_whitespace().map(word).collect();
        format!("[{}]", words.join(", "))
    }
}

impl Serialize for CommandLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Words)
    }
}

/// Reads the list of words, and explains how to write a list instead of a text.
struct Words;

impl<'de> Visitor<'de> for Words {
    type Value = CommandLine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CommandLine, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element()? {
            words.push(word);
        }
        Ok(CommandLine(words))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CommandLine, E> {
        let list = if holds_key(text) { "[PROGRAM, ARGUMENT]".to_owned() } else { CommandLine::list_of(text) };
        Err(E::custom(format!("a token command runs without a shell, so it is a list: write command: {list}")))
    }
}

impl JsonSchema for CommandLine {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "CommandLine".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "string" }, "minItems": 1 })
    }
}
