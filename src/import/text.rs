//! How values, names and comments are written in the plan.

use serde_json::Value;

use crate::plan::{is_secret_name, looks_like_key};

/// The longest comment, in characters.
const LONGEST: usize = 300;
/// The longest name that is made of something, in characters.
const LONGEST_NAME: usize = 48;
/// Words that YAML 1.1 or 1.2 readers take for something other than a text.
const RESERVED: [&str; 11] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
/// Values that mean "no key" to servers without one.
const NO_KEY: [&str; 5] = ["empty", "none", "dummy", "-", ""];
/// What stands for a secret.
pub(super) const HIDDEN: &str = "***";

/// A text as a YAML scalar: plain where that reads back as the same text, else in double quotes.
pub(super) fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '+' | ':' | '@');
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/'));
    let reserved = RESERVED.contains(&text.to_ascii_lowercase().as_str());
    if begins && text.chars().all(plain) && !text.ends_with(':') && !reserved {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            // Besides control characters those that end a line or may not stand in YAML.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') => {
                quoted.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A name for a table's entry, made of what something is called elsewhere.
pub(super) fn name_of(text: &str, otherwise: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(LONGEST_NAME).collect();
    let name = name.trim_matches(['-', '.', '_']);
    if name.is_empty() { otherwise.to_owned() } else { name.to_owned() }
}

/// A text in one line of a comment.
pub(super) fn one_line(text: &str) -> String {
    let breaks =
        |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    let line: String = text.chars().map(|c| if breaks(c) { ' ' } else { c }).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Seconds as a duration of a plan; at most a year, which no run lasts.
pub(super) fn seconds(seconds: f64) -> String {
    let millis = (seconds.clamp(0.0, 31_536_000.0) * 1000.0).round() as u64;
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}

/// Whether a key is none.
pub(super) fn is_no_key(value: &str) -> bool {
    NO_KEY.contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Values that must not be repeated anywhere.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Takes a value that must not be repeated.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        // Parts of a value may stand alone elsewhere: the key behind `Bearer`.
        for part in value.split_whitespace().chain([value]) {
            if part.len() >= 4 && !part.eq_ignore_ascii_case("bearer") && !self.0.iter().any(|known| known == part) {
                self.0.push(part.to_owned());
            }
        }
        self.0.sort_by_key(|part| std::cmp::Reverse(part.len()));
    }

    /// Takes what stands under the name of a secret, unless it only says where one is.
    pub fn add_named(&mut self, name: &str, value: &str) {
        let is_reference =
            name.to_ascii_lowercase().ends_with("env") || value.starts_with("env:") || value.starts_with('$');
        if is_secret_name(name) && !is_reference && !is_no_key(value) {
            self.add(value);
        }
    }

    /// Takes user and password of an address.
    pub fn add_address(&mut self, text: &str) {
        for (at, _) in text.match_indices("://") {
            let authority = text[at + 3..].split(['/', '?', '#', ' ']).next().unwrap_or_default();
            if let Some((user, _)) = authority.rsplit_once('@') {
                user.split(':').for_each(|part| self.add(part));
            }
        }
        for (name, value) in text.split(['?', '&']).skip(1).filter_map(|pair| pair.split_once('=')) {
            self.add_named(name, value.split('#').next().unwrap_or_default());
        }
    }

    /// Takes every value of a JSON text or tree that has the name of a secret.
    pub fn add_json(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.add_json(value)),
            Value::Object(object) => object.iter().for_each(|(name, value)| match value {
                Value::String(text) => {
                    self.add_named(name, text);
                    self.add_address(text);
                }
                value => self.add_json(value),
            }),
            Value::String(text) => self.add_address(text),
            _ => {}
        }
    }

    /// A text without them, and without what looks like a key of a well-known service.
    pub fn hide(&self, text: &str) -> String {
        let text = self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN));
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let mut clean = String::with_capacity(text.len());
        for piece in text.split_inclusive(|c: char| !is_key(c)) {
            let word = piece.trim_end_matches(|c: char| !is_key(c));
            if looks_like_key(word) {
                clean.push_str(HIDDEN);
                clean.push_str(&piece[word.len()..]);
            } else {
                clean.push_str(piece);
            }
        }
        clean
    }

    /// A named value as it may be shown.
    pub fn shown(&self, name: &str, value: &str) -> String {
        if is_secret_name(name) && !value.is_empty() { HIDDEN.to_owned() } else { self.hide(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_read_back_as_the_same_text() {
        for text in
            ["a", "meta-llama/Llama-3.1", "1.5", "true", "", "a: b", "a\nb", "é", "\u{7f}", "#x", "x:", "1e3", "~"]
        {
            let yaml = format!("key: {}", scalar(text));
            let read: std::collections::BTreeMap<String, serde_json::Value> = serde_yaml::from_str(&yaml).unwrap();
            assert_eq!(read["key"], text, "{yaml}");
        }
    }

    #[test]
    fn secrets_are_hidden_whole_and_in_parts() {
        let mut secrets = Secrets::default();
        secrets.add("Bearer abcd1234");
        assert_eq!(secrets.hide("x=abcd1234 y"), "x=*** y");
        assert_eq!(secrets.hide("see sk-0123456789abcdef!"), "see ***!");
        assert_eq!(secrets.shown("hf-token", "anything"), HIDDEN);
        assert_eq!(secrets.shown("random-input-len", "1024"), "1024");
    }
}
