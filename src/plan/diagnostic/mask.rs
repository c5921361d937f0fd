//! Keeps secrets out of errors. A plan must not contain secrets, but an error may quote one that is there
//! by accident. Anything that may be a secret is therefore masked in the message and in the quoted line.

use crate::plan::text::span::{Span, shifted};
use crate::plan::text::tree::{Node, Value};
use crate::units::secrecy::{is_secret_name, keys_in, without_secret};
use crate::units::text::{is_unseen, sequence};

/// The secrets in the texts of a plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mask {
    spans: Vec<Span>,
    texts: Vec<String>,
}

/// Whether a text is a reference to a secret and not a secret itself.
fn is_reference(text: &str) -> bool {
    text.parse::<crate::plan::text::secret::SecretRef>().is_ok()
}

/// Whether a line contains a reference to a secret.
fn has_reference(line: &str) -> bool {
    line.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '{' | '}' | ',' | '=')).any(is_reference)
}

impl Mask {
    /// Finds the secrets in a text: in its tree if there is one, or in its lines if it could not be parsed.
    pub(crate) fn new(text: &str, tree: Option<&Node>) -> Mask {
        let mut mask = Mask::default();
        match tree {
            Some(node) => mask.collect(node, false),
            None => mask.collect_lines(text),
        }
        mask.collect_words(text);
        mask.collect_texts(text);
        mask
    }

    /// Also masks the secrets in the lines of a text, because its tree may lack some of them.
    pub(crate) fn add_lines(&mut self, text: &str) {
        self.collect_lines(text);
        self.collect_texts(text);
    }

    /// Also masks the secrets of another text, which begins at byte `by` of the concatenated texts.
    pub(crate) fn join(&mut self, other: Mask, by: usize) {
        self.spans.extend(other.spans.into_iter().map(|span| shifted(span, by)));
        self.texts.extend(other.texts);
        self.sort_texts();
    }

    fn collect_texts(&mut self, text: &str) {
        for span in self.spans.clone() {
            let span = crate::plan::text::span::clamp(span, text);
            self.texts.push(text[span].trim_matches(['"', '\'']).to_owned());
        }
        self.texts.retain(|text| text.len() >= 3);
        self.sort_texts();
    }

    /// Sorts the secrets with the longest first, because a shorter one may be part of a longer one.
    fn sort_texts(&mut self) {
        self.texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    fn collect(&mut self, node: &Node, secret: bool) {
        match &node.value {
            Value::Map(entries) => {
                for entry in entries {
                    // A token command is not a secret. Keys of well-known services in it are found as words.
                    let is_command = secret && ["command", "valid"].contains(&entry.key.as_str());
                    self.collect(&entry.node, !is_command && (secret || is_secret_name(&entry.key)));
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.collect(item, secret)),
            Value::Text(text) if secret && !is_reference(text) => {
                self.spans.push(node.span.clone());
                self.texts.push(text.clone());
            }
            // A fragment is an error, and nobody knows what was meant by it.
            Value::Text(text) if text.contains("://") && text.contains('#') => self.spans.push(node.span.clone()),
            Value::Int(_) | Value::Float(_) if secret => self.spans.push(node.span.clone()),
            // Invisible characters may be escaped in the file, so that the words of the parsed text differ
            // from those in the file.
            Value::Text(text) if text.contains(is_unseen) => {
                let mut found = Mask::default();
                found.collect_words(text);
                if !found.spans.is_empty() {
                    found.collect_texts(text);
                    self.spans.push(node.span.clone());
                    self.texts.extend(found.texts);
                }
            }
            _ => {}
        }
    }

    /// Finds secrets written as `key: value` or `key = value` in a text that could not be parsed, and lines that
    /// are indented below the key of a secret.
    fn collect_lines(&mut self, text: &str) {
        let mut start = 0;
        let mut hidden_below: Option<usize> = None;
        for line in text.split_inclusive('\n') {
            let indent = line.len() - line.trim_start().len();
            let end = start + line.trim_end().len();
            if hidden_below.is_some_and(|outer| indent > outer) && !has_reference(line) {
                self.spans.push(start + indent..end.max(start + indent));
            } else {
                hidden_below = None;
                if let Some(value) = after_secret_key(line) {
                    self.spans.push(start + value..end.max(start + value));
                    hidden_below = Some(indent);
                }
            }
            start += line.len();
        }
    }

    /// Finds values that look like secrets, wherever they occur, even if they contain invisible characters.
    /// Such characters are removed before the text is shown, so the secret would be readable.
    fn collect_words(&mut self, text: &str) {
        let is_hidden = |c: char| is_unseen(c) && !matches!(c, '\n' | '\r' | '\t');
        if !text.contains(is_hidden) {
            return self.collect_seen_words(text);
        }
        // The text is searched twice: first with only the invisible characters removed, then with whole
        // escape sequences removed, because a terminal does not show the rest of a sequence either.
        for obeyed in [false, true] {
            let (mut seen, mut places) = (String::with_capacity(text.len()), Vec::with_capacity(text.len()));
            let mut behind = 0;
            for (at, c) in text.char_indices() {
                let end = at + c.len_utf8();
                if at >= behind && is_hidden(c) {
                    behind = end + if obeyed { sequence(c, &text[end..]) } else { 0 };
                }
                if at >= behind {
                    places.extend((at..end).map(|byte| byte..end));
                    seen.push(c);
                }
            }
            let mut found = Mask::default();
            found.collect_seen_words(&seen);
            let place = |span: &Span| Some(places.get(span.start)?.start..places.get(span.end.checked_sub(1)?)?.end);
            self.spans.extend(found.spans.iter().filter_map(place));
        }
    }

    /// Finds `user:password@` and `api_key=…` in URLs, and keys of well-known services.
    fn collect_seen_words(&mut self, text: &str) {
        for (at, _) in text.match_indices("://") {
            let rest = &text[at + 3..];
            let end =
                rest.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?')).unwrap_or(rest.len());
            if let Some(user_end) = rest[..end].rfind('@') {
                self.spans.push(at + 3..at + 3 + user_end);
            }
        }
        self.spans.extend(keys_in(text));
        self.collect_query(text);
    }

    /// Finds `api_key=…` in the query, the fragment or the path of a URL.
    fn collect_query(&mut self, text: &str) {
        for (at, _) in text.match_indices(['?', '&', '#', ';', '/']) {
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '&' | '"' | '\'')).unwrap_or(rest.len());
            if let Some((name, value)) = rest[..end].split_once('=')
                && is_secret_name(name)
            {
                self.spans.push(at + 1 + name.len() + 1..at + 1 + name.len() + 1 + value.len());
            }
        }
    }

    /// Returns the text with every byte of a secret replaced by `*`, so that lines and columns stay the same.
    pub(crate) fn source(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for span in &self.spans {
            let span = crate::plan::text::span::clamp(span.clone(), text);
            bytes[span].iter_mut().filter(|byte| !byte.is_ascii_whitespace()).for_each(|byte| *byte = b'*');
        }
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// Returns a message without any secret.
    pub(crate) fn clean(&self, message: &str) -> String {
        self.texts.iter().fold(message.to_owned(), |message, text| without_secret(&message, text, "***"))
    }
}

/// The byte position of the value in a line that sets a secret; `None` for any other line.
fn after_secret_key(line: &str) -> Option<usize> {
    for (at, separator) in line.match_indices([':', '=']) {
        let before = line[..at].trim_end().trim_end_matches(['"', '\'']);
        let name = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).next().unwrap_or_default();
        let value = &line[at + separator.len()..];
        if is_secret_name(name) && !has_reference(value) {
            return Some(line.len() - value.trim_start().len());
        }
    }
    None
}
