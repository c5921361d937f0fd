//! The texts of a request, and the two forms that servers accept: messages with roles, or a single text.

use std::borrow::Cow;

use serde::Serialize;

/// The texts of a request, independent of the protocol.
#[derive(Debug, Clone, Default)]
pub struct Said<'a> {
    /// The system message, if there is one.
    pub system: Option<&'a str>,
    /// The previous turns: the user's messages and the responses.
    pub history: Vec<(&'a str, &'a str)>,
    /// The user's message.
    pub user: &'a str,
    /// Further texts of the same request, for protocols that accept several.
    pub more: &'a [String],
    /// Replaces the nonce of the first message at the beginning of the request.
    pub own_nonce: Option<&'a str>,
    /// Whether it is a turn of a conversation. If so, the form as a single text names the speakers, from
    /// the first turn on.
    pub(crate) is_conversation: bool,
}

/// A message of a chat.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Message<'a> {
    /// Its role.
    pub role: &'static str,
    /// Its text.
    pub content: Cow<'a, str>,
}

impl<'a> Said<'a> {
    /// Creates a user's text without history.
    pub fn alone(user: &'a str) -> Said<'a> {
        Said { user, ..Said::default() }
    }

    /// Returns the bytes of all texts, before escaping.
    pub fn length(&self) -> usize {
        let history: usize = self.history.iter().map(|(user, answer)| user.len() + answer.len() + 64).sum();
        let more: usize = self.more.iter().map(|text| text.len() + 4).sum();
        history + more + self.user.len() + self.system.map_or(0, str::len)
    }

    /// Returns them as messages.
    pub fn messages(&self) -> Vec<Message<'a>> {
        let message = |role, content: &'a str| Message { role, content: content.into() };
        let system = self.system.map(|content| message("system", content));
        let turns =
            self.history.iter().flat_map(|(user, answer)| [message("user", user), message("assistant", answer)]);
        let mut messages: Vec<Message> = system.into_iter().chain(turns).chain([message("user", self.user)]).collect();
        if let (Some(first), Some(own)) = (messages.first_mut(), self.own_nonce) {
            first.content = format!("{own}{}", without_nonce(&first.content)).into();
        }
        messages
    }

    /// Returns the texts as a single text for an API without roles: the system text, an empty line, and the
    /// user's text.
    ///
    /// In a conversation, the speakers are named, each on a new line, and the text ends where the response
    /// begins: `User: …`, `Assistant:`. Responses follow the colon verbatim, so that the text of each turn
    /// begins with the complete text of the previous turn, byte for byte.
    pub(crate) fn transcript(&self) -> String {
        let mut text = String::with_capacity(self.length() + 64);
        if let Some(system) = self.system {
            text.push_str(system);
            text.push_str("\n\n");
        }
        if self.is_conversation {
            for (user, answer) in &self.history {
                for piece in ["User: ", user, "\nAssistant:", answer, "\n"] {
                    text.push_str(piece);
                }
            }
            for piece in ["User: ", self.user, "\nAssistant:"] {
                text.push_str(piece);
            }
        } else {
            text.push_str(self.user);
        }
        match self.own_nonce {
            Some(own) => opened(self.is_conversation && self.system.is_none(), own, &text),
            None => text,
        }
    }

    /// Returns each of its texts separately, each preceded by the same system text.
    pub fn texts(&self) -> Vec<String> {
        let alone = |user| Said { user, more: &[], history: Vec::new(), is_conversation: false, ..*self }.transcript();
        [self.user].into_iter().chain(self.more.iter().map(String::as_str)).map(alone).collect()
    }
}

/// Returns a text in which `own` replaces the nonce at the beginning; a speaker's name comes after the
/// nonce.
fn opened(speaker_first: bool, own: &str, text: &str) -> String {
    let speaker = if speaker_first { "User: " } else { "" };
    let said = text.strip_prefix(speaker).unwrap_or(text);
    format!("{own}{speaker}{}", without_nonce(said))
}

/// Returns `text` without the nonce at its beginning (`[ref 482 773 194 205] `, or fewer groups).
fn without_nonce(text: &str) -> &str {
    let Some((_, rest)) = text.strip_prefix("[ref ").and_then(|groups| groups.split_once(']')) else { return text };
    rest.strip_prefix(' ').unwrap_or(rest)
}
