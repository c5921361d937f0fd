//! Secrets that must not be shown: keys, passwords and the values of headers, anywhere in the input. A secret
//! is recognized by its place (`masking`). A long secret that cannot be an ordinary word is also searched for
//! elsewhere, because scripts copy keys into other options.

use std::cell::RefCell;

use serde_json::Value;

use super::masking::{Found, is_secret, masked, masked_json, masked_quotes, without_credentials};
pub(super) use super::masking::{HIDDEN, names_headers};
use super::shell::without_mark_names;
use crate::units::secrecy::{SCHEMES, keys_in, names_secret};

/// Why a value is not in the plan.
pub(super) const WHY: &str = "it contains a secret, and a plan holds none: write `{ secret: env:NAME }` where the \
                              plan takes a reference (`api_key`, `headers`, `env` of `launch`)";
/// The minimum length of a secret that is also searched for elsewhere in the input. The secret must contain
/// digits and letters, so that no ordinary word matches.
const SHORTEST: usize = 8;
/// The minimum length of a secret that is also searched for elsewhere in the input even if it does not follow
/// the name of a secret. Such a secret must also contain lower-case and upper-case letters.
const SHORTEST_UNNAMED: usize = 10;

/// Returns the name and value of a header, from `Name: value`, `Name:value` or `Name=value`. `None` for a
/// word without a name, or with a name that may be part of a key (`YWJj==`).
fn header(word: &str, is_first: bool) -> Option<(&str, &str)> {
    let at = word.find([':', '='])?;
    let (name, value) = (&word[..at], &word[at + 1..]);
    let is_token = !name.is_empty() && name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let has_value = word[at..].starts_with(':') || !value.trim_matches('=').is_empty();
    let is_known = names_secret(name) || name.get(..2).is_some_and(|begin| begin.eq_ignore_ascii_case("x-"));
    (is_token && (is_known || (is_first && has_value))).then_some((name, value.trim()))
}

/// Returns the headers in the words after an option. Unquoted headers take several words. The name is empty
/// if it cannot be separated from the value.
pub(super) fn headers(words: &[String]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (number, word) in words.iter().enumerate() {
        match (header(word.trim(), number == 0), found.last_mut()) {
            (Some((name, value)), _) => found.push((name.to_owned(), value.to_owned())),
            (None, Some((_, value))) => *value = format!("{value} {word}").trim().to_owned(),
            (None, None) => found.push((String::new(), word.clone())),
        }
    }
    found
}

/// Whether a text is only the address of a server, which is not a secret even if it was wrongly parsed as
/// a header.
fn is_bare_address(text: &str) -> bool {
    let authority = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    authority.is_some_and(|host| !host.trim_end_matches('/').contains(['/', '@', '?', '#']))
}

/// Whether a secret is distinctive enough to be searched for elsewhere in the input.
fn is_unmistakable(text: &str, is_named: bool) -> bool {
    let has = |test: fn(&u8) -> bool| text.bytes().any(|b| test(&b));
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let is_long = match is_named {
        true => text.len() >= SHORTEST,
        false => text.len() >= SHORTEST_UNNAMED && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase),
    };
    is_mixed && is_long && !is_bare_address(text)
}

/// Returns headers in their displayable form, that is, their names.
pub(super) fn shown_headers(words: &[String]) -> String {
    let one =
        |(name, _): (String, String)| if name.is_empty() { HIDDEN.to_owned() } else { format!("{name}={HIDDEN}") };
    headers(words).into_iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Values that must not be shown anywhere.
#[derive(Debug, Default)]
pub(super) struct Secrets(RefCell<Vec<String>>);

impl Secrets {
    /// Adds a value that must not be shown.
    pub(super) fn add(&self, value: &str) {
        self.add_parts(value, true);
    }

    /// Adds a value and its parts that may occur alone elsewhere, such as the key after `Bearer` or the
    /// text around `$NAME`.
    fn add_parts(&self, value: &str, is_named: bool) {
        let mut known = self.0.borrow_mut();
        for literal in without_mark_names(value.trim()) {
            for part in literal.split_whitespace().chain([literal.trim()]) {
                let is_scheme = SCHEMES.contains(&part.to_ascii_lowercase().as_str());
                if is_scheme || !is_unmistakable(part, is_named) {
                    continue;
                }
                // The value is added unchanged, and as quoted by JSON and YAML.
                let quoted = Value::from(part).to_string();
                for form in [part, quoted.trim_matches('"')] {
                    if !known.iter().any(|known| known == form) {
                        known.push(form.to_owned());
                    }
                }
            }
        }
        known.sort_by_key(|part| std::cmp::Reverse(part.len()));
    }

    fn add_all(&self, found: Found) {
        for (secret, is_named) in found {
            // The user name and the password of an address may also occur separately.
            secret.split(':').chain([secret.as_str()]).for_each(|part| self.add_parts(part, is_named));
        }
    }

    /// Adds the value that follows the name of a secret, unless it is only a reference.
    pub(crate) fn add_named(&self, name: &str, value: &str) {
        if is_secret(name, value) {
            self.add(value);
        }
    }

    /// Adds the values of headers, because any header may be secret.
    pub(crate) fn add_headers(&self, words: &[String]) {
        for (name, value) in headers(words) {
            self.add_parts(&value, name.is_empty() || names_secret(&name));
        }
    }

    /// Adds the secrets in a text.
    pub(crate) fn add_text(&self, text: &str) {
        let mut found = Found::new();
        masked(text, &mut found);
        self.add_all(found);
    }

    /// Adds the secrets in a JSON tree.
    pub(crate) fn add_json(&self, value: &Value) {
        let mut found = Found::new();
        masked_json("", value, &mut found);
        self.add_all(found);
    }

    /// Returns a text of the source without its secrets.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.hide_known(&masked(text, &mut Found::new()))
    }

    /// Returns a sentence without known secrets. The sentence may mention keys, so the name of a key
    /// does not mean that a secret follows.
    pub(crate) fn hide_known(&self, text: &str) -> String {
        let known = self.0.borrow();
        let text = known.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN));
        let text = without_credentials(&text);
        let mut clean = String::with_capacity(text.len());
        let mut copied = 0;
        for key in keys_in(&text) {
            clean.push_str(&text[copied..key.start]);
            clean.push_str(HIDDEN);
            copied = key.end;
        }
        clean + &text[copied..]
    }

    /// Returns a sentence without known secrets, and without the secrets in its quoted texts.
    pub(crate) fn hide_quoted(&self, sentence: &str) -> String {
        self.hide_known(&masked_quotes(sentence))
    }

    /// Whether a text of the source contains a secret.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        self.hide(text) != text
    }

    /// Whether the value of this name is a secret or contains one.
    pub(crate) fn are_in_value(&self, name: &str, value: &Value) -> bool {
        let clean = masked_json(name, value, &mut Found::new());
        let text = clean.to_string();
        clean != *value || self.hide_known(&text) != text
    }

    /// Returns a named value in displayable form.
    pub(super) fn shown(&self, name: &str, value: &str) -> String {
        let is_hidden = (names_secret(name) || names_headers(name)) && !value.is_empty();
        if is_hidden { HIDDEN.to_owned() } else { self.hide(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_secrets_are_hidden_elsewhere_and_short_ones_where_they_stand() {
        let secrets = Secrets::default();
        secrets.add("Bearer abcd1234");
        assert_eq!(secrets.hide("x=abcd1234 y"), "x=*** y");
        assert_eq!(secrets.hide("see sk-0123456789abcdef!"), "see ***!");
        assert_eq!(secrets.shown("hf-token", "anything"), HIDDEN);
        assert_eq!(secrets.shown("random-input-len", "1024"), "1024");
        secrets.add("a\"b\\cd1234");
        assert_eq!(secrets.hide(&Value::from("xa\"b\\cd1234").to_string()), "\"x***\"");
        for common in ["vllm", "user", "model", "500", "out/dir", "presence_penalty"] {
            secrets.add(common);
            assert_eq!(secrets.hide(common), common);
            assert_eq!(secrets.hide(&format!("password={common}")), "password=***");
        }
    }

    #[test]
    fn of_headers_only_certain_names_are_shown() {
        for (words, expected) in [
            (&["Authorization: Bearer abc"][..], "Authorization=***"),
            (&["X-Api-Key:abc"], "X-Api-Key=***"),
            (&["Authorization:", "Bearer", "YWJj=="], "Authorization=***"),
            (&["team=perf", "Authorization=Bearer", "x"], "team=*** Authorization=***"),
            (&["YWJj=="], "***"),
            (&["abc"], "***"),
            (&["{\"Authorization\": \"Bearer abc\"}"], "***"),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(shown_headers(&words), expected, "{words:?}");
        }
    }
}
