//! The common form to which the entries of all formats are converted.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::units::Nanos;

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// The system: an instruction at the beginning of a conversation.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The speaker of the message.
    pub role: Role,
    /// The text of the message.
    #[serde(rename = "content")]
    pub text: String,
}

/// A user's message and its response, if the data contains one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange<'a> {
    /// The user's message.
    pub user: &'a str,
    /// The response; `None` if the data does not contain it.
    pub answer: Option<&'a str>,
}

/// The place of an entry in its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line in which the entry begins, or its row in a Parquet file; counted from 1.
    pub line: u64,
    /// The number of the entry in a JSON array, counted from 1, because a whole array may be on one line.
    /// `None` if every entry has its own line.
    pub entry: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry {
            Some(entry) => write!(f, "{}, entry {entry}", self.line),
            None => write!(f, "{}", self.line),
        }
    }
}

/// One request or conversation of a data set, or one request of a trace.
///
/// A record has turns (text), or at least `input_tokens` (a length without text), or both.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Record {
    /// The place of the record in the file.
    #[serde(skip)]
    pub place: Place,
    /// The record's id in the file; `None` if it has none.
    pub id: Option<String>,
    /// The messages: at most one system message, which comes first, then user and assistant
    /// alternately, beginning with the user.
    #[serde(rename = "messages", skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// Number of prompt tokens of the first request, as declared in the file; `None` if it is not declared.
    pub input_tokens: Option<u32>,
    /// Number of output tokens of the first request, as declared in the file; `None` if it is not declared.
    pub output_tokens: Option<u32>,
    /// Arrival time of the request, relative to the first time in the file; `None` if the file has no times.
    #[serde(rename = "offset_ns", serialize_with = "number_of_nanos")]
    pub offset: Option<Nanos>,
    /// Names of the prompt's blocks of 512 tokens, from its beginning. Blocks with equal names have equal
    /// text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hash_ids: Vec<u64>,
    /// The name of the conversation, if its requests are separate records; otherwise `None`.
    pub conversation: Option<String>,
    /// The language, as declared in the file; `None` if it is not declared.
    pub language: Option<String>,
}

fn number_of_nanos<S: Serializer>(offset: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    offset.map(|Nanos(nanos)| nanos).serialize(serializer)
}

/// Number of tokens in a block that a hash id names, as in the Mooncake trace.
pub(crate) const BLOCK_TOKENS: u32 = 512;

/// Estimated number of characters per token of English text, used without a tokenizer.
pub(crate) const CHARS_PER_TOKEN: usize = 4;

/// Returns the estimated number of tokens of a text: characters / 4, rounded up.
pub(crate) fn estimated_tokens(text: &str) -> u32 {
    u32::try_from(text.chars().count().div_ceil(CHARS_PER_TOKEN)).unwrap_or(u32::MAX)
}

impl Record {
    /// Returns the system message; `None` if there is none.
    pub fn system(&self) -> Option<&str> {
        self.turns.first().filter(|turn| turn.role == Role::System).map(|turn| turn.text.as_str())
    }

    /// Returns the user's messages with their responses, in order.
    pub fn exchanges(&self) -> impl Iterator<Item = Exchange<'_>> {
        let answer = |at: usize| self.turns.get(at).filter(|turn| turn.role == Role::Assistant);
        self.turns.iter().enumerate().filter(|(_, turn)| turn.role == Role::User).map(move |(at, turn)| Exchange {
            user: turn.text.as_str(),
            answer: answer(at + 1).map(|turn| turn.text.as_str()),
        })
    }

    /// Returns the number of requests of the record. Each user message is a request; a record that has only
    /// a length is one request.
    pub fn requests(&self) -> usize {
        self.exchanges().count().max(1)
    }

    /// Returns the number of characters in the first request's prompt, that is, in the system message and
    /// the first user message; `None` if there is no text.
    pub fn prompt_chars(&self) -> Option<u64> {
        let first = self.exchanges().next()?;
        let system = self.system().map_or(0, |text| text.chars().count());
        Some((system + first.user.chars().count()) as u64)
    }

    /// Returns the number of tokens in the first request's prompt, as declared, or otherwise estimated from
    /// its characters; `None` if the record contains neither a declared number nor text.
    pub fn prompt_tokens(&self) -> Option<u32> {
        let estimate = || {
            let first = estimated_tokens(self.exchanges().next()?.user);
            Some(self.system().map_or(0, estimated_tokens).saturating_add(first))
        };
        self.input_tokens.or_else(estimate)
    }

    /// Returns the number of tokens in the first request's response, as declared, or otherwise
    /// estimated from its characters; `None` if there is no response.
    pub(crate) fn answer_tokens(&self) -> Option<u32> {
        self.output_tokens.or_else(|| Some(estimated_tokens(self.exchanges().next()?.answer?)))
    }
}
