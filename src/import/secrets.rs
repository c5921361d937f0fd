//! What must not be repeated: keys, passwords and the values of headers, wherever the imported words hold them. Only a
//! place that is certain to hold no secret is shown; anything else becomes `***`.

use std::cell::RefCell;

use serde_json::Value;

use super::shell::without_mark_names;
use super::text::is_no_key;
use crate::units::secrecy::{SCHEMES, is_scheme, keys_in, names_secret};

/// What stands for a secret.
pub(super) const HIDDEN: &str = "***";
/// The shortest part that is looked for elsewhere too; shorter ones are parts of common words.
const SHORTEST: usize = 4;
/// The shortest value that is looked for elsewhere where its name does not tell a secret: `X-Client: vllm` is none.
const SHORTEST_UNNAMED: usize = 8;
/// Words that plans made here consist of: one of them behind `--api-key` was mistyped, and masks would make the plan none.
const OWN_WORDS: [&str; 34] = [
    "api_key",
    "arrivals",
    "batch_size",
    "batches",
    "capped-rates",
    "completions",
    "constant",
    "documents",
    "embeddings",
    "endpoint",
    "endpoints",
    "guidellm",
    "hardware",
    "host_env",
    "ignore_eos",
    "insecure_tls",
    "llamacpp",
    "llmperf",
    "measure",
    "min_requests",
    "output_tokens",
    "per_second",
    "poisson",
    "presence_penalty",
    "prompt_tokens",
    "query_tokens",
    "responses",
    "saturated",
    "scenario",
    "scenarios",
    "stabilize",
    "sweepline",
    "temperature",
    "tokenizer",
];
/// Whether an option or a key holds headers; argparse takes the beginning of a name for the whole.
pub(super) fn names_headers(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("header") || (name.len() >= 3 && "header".starts_with(&name))
}

/// Name and value of a header, of `Name: value`, `Name:value` or `Name=value`. A word that has no name, or one that may be
/// a part of a key (`YWJj==`), has none.
fn header(word: &str, is_first: bool) -> Option<(&str, &str)> {
    let at = word.find([':', '='])?;
    let (name, value) = (&word[..at], &word[at + 1..]);
    let is_token = !name.is_empty() && name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let has_value = word[at..].starts_with(':') || !value.trim_matches('=').is_empty();
    let is_known = names_secret(name) || name.get(..2).is_some_and(|begin| begin.eq_ignore_ascii_case("x-"));
    (is_token && (is_known || (is_first && has_value))).then_some((name, value.trim()))
}

/// The headers that the words behind an option say; unquoted ones take several words. The name is empty where none can be
/// told from the value.
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

/// Whether a text is the address of a server and nothing else: a header that took it by mistake makes it no secret.
fn is_bare_address(text: &str) -> bool {
    let authority = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    authority.is_some_and(|host| !host.trim_end_matches('/').contains(['/', '@', '?', '#']))
}

/// Headers as they may be shown: their names.
pub(super) fn shown_headers(words: &[String]) -> String {
    let one =
        |(name, _): (String, String)| if name.is_empty() { HIDDEN.to_owned() } else { format!("{name}={HIDDEN}") };
    headers(words).into_iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Values that must not be repeated anywhere.
#[derive(Debug, Default)]
pub(super) struct Secrets(RefCell<Vec<String>>);

impl Secrets {
    /// Takes a value that must not be repeated.
    pub(super) fn add(&self, value: &str) {
        self.add_parts(value, SHORTEST);
    }

    /// Takes a value and its parts, which may stand alone elsewhere: the key behind `Bearer`, what stands beside `$NAME`.
    fn add_parts(&self, value: &str, shortest: usize) {
        let mut known = self.0.borrow_mut();
        for literal in without_mark_names(value.trim()) {
            for part in literal.split_whitespace().chain([literal.trim()]) {
                let is_scheme = SCHEMES.contains(&part.to_ascii_lowercase().as_str());
                if part.len() < shortest || is_scheme || is_bare_address(part) || OWN_WORDS.contains(&part) {
                    continue;
                }
                // As it stands, and as JSON and YAML quote it.
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

    /// Takes what stands under the name of a secret, unless it only says where one is.
    pub(crate) fn add_named(&self, name: &str, value: &str) {
        if names_secret(name) && !is_reference(name, value) && !is_no_key(value) {
            self.add(value);
        }
    }

    /// Takes the values of headers: every header may be one.
    pub(crate) fn add_headers(&self, words: &[String]) {
        for (name, value) in headers(words) {
            let is_named = name.is_empty() || names_secret(&name);
            self.add_parts(&value, if is_named { SHORTEST } else { SHORTEST_UNNAMED });
        }
    }

    /// Takes what a text holds: user, password and query of addresses, `Authorization: …`, `Bearer …`.
    pub(crate) fn add_text(&self, text: &str) {
        self.add_address(text);
        let words: Vec<&str> = text.split_whitespace().map(|word| word.trim_matches(['"', '\'', ','])).collect();
        for (number, word) in words.iter().enumerate() {
            let next = |count: usize| words.get(number + count).copied().unwrap_or_default();
            if is_scheme(word) {
                self.add(next(1));
            }
            if let Some((name, value)) = header(word, false).filter(|(name, _)| names_secret(name)) {
                let value = if value.is_empty() { next(1) } else { value };
                self.add_named(name, if is_scheme(value) { "" } else { value });
            }
        }
    }

    /// Takes user, password and query of an address.
    fn add_address(&self, text: &str) {
        let authority = |rest: &str| rest.split(['/', '?', '#', ' ']).next().unwrap_or_default().to_owned();
        let mut users = Vec::new();
        for (at, _) in text.match_indices("://") {
            users.extend(authority(&text[at + 3..]).rsplit_once('@').map(|(user, _)| user.to_owned()));
        }
        if !text.contains("://") {
            let bare = authority(text);
            users.extend(bare.rsplit_once('@').map(|(user, _)| user.to_owned()).filter(|user| user.contains(':')));
        }
        users.iter().flat_map(|user| user.split(':').chain([user.as_str()])).for_each(|part| self.add(part));
        if text.contains("://") || text.contains('?') {
            for pair in text.split(['/', ';']).filter(|part| part.contains('=') && !part.contains(['?', '&', '#'])) {
                let (name, value) = pair.split_once('=').unwrap_or_default();
                self.add_named(name, value.split(char::is_whitespace).next().unwrap_or_default());
            }
            for pair in text.split(['?', '&', '#']).skip(1) {
                let (name, value) = pair.split_once('=').unwrap_or(("key", pair));
                let value = value.split(char::is_whitespace).next().unwrap_or_default();
                self.add_parts(value, if names_secret(name) { SHORTEST } else { SHORTEST_UNNAMED });
            }
        }
    }

    /// Takes every value of a JSON text or tree that may be a secret.
    pub(crate) fn add_json(&self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.add_json(value)),
            Value::Object(object) => object.iter().for_each(|(name, value)| self.add_json_named(name, value)),
            Value::String(text) => self.add_text(text),
            _ => {}
        }
    }

    fn add_json_named(&self, name: &str, value: &Value) {
        match value {
            Value::String(text) if names_headers(name) => self.add_headers(std::slice::from_ref(text)),
            Value::Array(values) if names_headers(name) => {
                let words: Vec<String> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                self.add_headers(&words);
            }
            Value::Object(headers) if names_headers(name) => headers.iter().for_each(|(name, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.add_headers(&[format!("{name}: {value}")]);
            }),
            Value::Array(values) if names_secret(name) => {
                values.iter().for_each(|value| self.add_json_named(name, value));
            }
            Value::Number(number) if names_secret(name) => self.add_parts(&number.to_string(), SHORTEST_UNNAMED),
            Value::String(text) => {
                self.add_named(name, text);
                self.add_text(text);
            }
            value => self.add_json(value),
        }
    }

    /// A text without them, and without what looks like a key of a well-known service.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.without(text, SHORTEST)
    }

    /// A whole plan without them. Short ones are looked for in its comments alone: they are parts of its own words.
    pub(crate) fn hide_in_plan(&self, plan: &str) -> String {
        let clean = self.without(plan, SHORTEST_UNNAMED);
        clean.split_inclusive('\n').map(masks_quoted).collect()
    }

    fn without(&self, text: &str, shortest: usize) -> String {
        let known = self.0.borrow();
        let known = known.iter().filter(|secret| secret.len() >= shortest);
        let text = known.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN));
        let mut clean = String::with_capacity(text.len());
        let mut copied = 0;
        for key in keys_in(&text) {
            clean.push_str(&text[copied..key.start]);
            clean.push_str(HIDDEN);
            copied = key.end;
        }
        clean + &text[copied..]
    }

    /// A named value as it may be shown.
    pub(super) fn shown(&self, name: &str, value: &str) -> String {
        let is_hidden = (names_secret(name) || names_headers(name)) && !value.is_empty();
        if is_hidden { HIDDEN.to_owned() } else { self.hide(value) }
    }
}

/// A line of YAML in which values that begin with a mask are quoted: unquoted, it would read as an alias.
fn masks_quoted(line: &str) -> String {
    let (value, comment) = line.split_at(line.find(" #").unwrap_or(line.trim_end().len()));
    let mut quoted = String::with_capacity(line.len() + 2);
    let (mut depth, mut quote, mut at) = (0_usize, None, 0);
    while let Some(next) = value[at..].chars().next() {
        let before = quoted.trim_end();
        let begins = before.is_empty() || before.ends_with([':', ',', '[', '{', '-']);
        if quote.is_none() && begins && value[at..].starts_with(HIDDEN) {
            let rest = &value[at..];
            let end = if depth > 0 { rest.find([',', ']', '}']).unwrap_or(rest.len()) } else { rest.len() };
            // A key ends where its value begins.
            let text = rest[..end].trim_end();
            let text = &text[..text.find(": ").or(text.strip_suffix(':').map(str::len)).unwrap_or(text.len())];
            quoted.push_str(&format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
            at += text.len();
            continue;
        }
        match (quote, next) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') if begins => quote = Some(next),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        quoted.push(next);
        at += next.len_utf8();
    }
    quoted + comment
}

/// Whether a value says where a secret is: the name of a variable.
fn is_reference(name: &str, value: &str) -> bool {
    let is_variable = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_upper = |text: &str| is_variable(text) && !text.contains(|c: char| c.is_ascii_lowercase());
    let bare = value.strip_prefix('$').map(|rest| rest.trim_matches(['{', '}']));
    (name.to_ascii_lowercase().ends_with("env") && is_variable(value))
        || value.strip_prefix("env:").is_some_and(is_variable)
        || bare.is_some_and(is_upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_whole_and_in_parts() {
        let secrets = Secrets::default();
        secrets.add("Bearer abcd1234");
        assert_eq!(secrets.hide("x=abcd1234 y"), "x=*** y");
        assert_eq!(secrets.hide("see sk-0123456789abcdef!"), "see ***!");
        assert_eq!(secrets.shown("hf-token", "anything"), HIDDEN);
        assert_eq!(secrets.shown("random-input-len", "1024"), "1024");
        secrets.add("a\"b\\cd");
        assert_eq!(secrets.hide(&Value::from("a\"b\\cd").to_string()), "\"***\"");
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
