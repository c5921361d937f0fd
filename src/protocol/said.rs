//! What a request says, and the two forms in which a server takes it: messages with roles, or one text.

use std::borrow::Cow;

use serde::Serialize;

/// What a request says, whatever the protocol that carries it.
#[derive(Debug, Clone, Default)]
pub struct Said<'a> {
    /// The system message, where there is one.
    pub system: Option<&'a str>,
    /// The turns before: what the user said, and what was answered.
    pub history: Vec<(&'a str, &'a str)>,
    /// What the user says.
    pub user: &'a str,
    /// Further texts of the same request, for protocols that take several.
    pub more: &'a [String],
    /// What opens the request in the place of the nonce that its first message has.
    pub own_nonce: Option<&'a str>,
    /// Whether it is a turn of a conversation: one text then names the speakers, from the first turn on.
    pub(crate) is_conversation: bool,
}

/// A message of a chat.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Message<'a> {
    /// Who says it.
    pub role: &'static str,
    /// What.
    pub content: Cow<'a, str>,
}

impl<'a> Said<'a> {
    /// A text that somebody says without any history.
    pub fn alone(user: &'a str) -> Said<'a> {
        Said { user, ..Said::default() }
    }

    /// Bytes of all texts, before escaping.
    pub fn length(&self) -> usize {
        let history: usize = self.history.iter().map(|(user, answer)| user.len() + answer.len() + 64).sum();
        let more: usize = self.more.iter().map(|text| text.len() + 4).sum();
        history + more + self.user.len() + self.system.map_or(0, str::len)
    }

    /// As messages.
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

    /// As one text for an API that knows no roles: the system text first, then the user's, an empty line between them.
    ///
    /// A conversation names its speakers, each on a new line, and ends where the answer would begin: `User: …`, `Assistant:`.
    /// Answers follow the colon as they came, so that each turn's text begins with all of the turn before, byte for byte.
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

    /// Each of its texts as one that stands alone, all behind the same system text.
    pub fn texts(&self) -> Vec<String> {
        let alone = |user| Said { user, more: &[], history: Vec::new(), is_conversation: false, ..*self }.transcript();
        [self.user].into_iter().chain(self.more.iter().map(String::as_str)).map(alone).collect()
    }
}

/// A text with `own` in the place of the nonce that opens it; a speaker's name comes after it.
fn opened(speaker_first: bool, own: &str, text: &str) -> String {
    let speaker = if speaker_first { "User: " } else { "" };
    let said = text.strip_prefix(speaker).unwrap_or(text);
    format!("{own}{speaker}{}", without_nonce(said))
}

/// `text` without the nonce that opens it (`[ref 482 773 194 205] `, or fewer groups).
fn without_nonce(text: &str) -> &str {
    let Some((_, rest)) = text.strip_prefix("[ref ").and_then(|groups| groups.split_once(']')) else { return text };
    rest.strip_prefix(' ').unwrap_or(rest)
}
