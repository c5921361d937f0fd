//! Writes values, names and comments in the notation of a plan.

use super::masking::holds;
pub(super) use super::masking::is_no_key;
use crate::plan::Format;
use crate::plan::foreign::{self, Value};
use crate::units::text::is_unseen;

/// Maximum length of a comment, in characters.
const LONGEST: usize = 300;
/// The maximum length of a derived name, in characters.
const LONGEST_NAME: usize = 48;
/// Words that YAML 1.1 or 1.2 parsers do not read as text.
const RESERVED: [&str; 11] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];

/// Returns a text as a YAML scalar, plain if it parses as the same text, otherwise in double
/// quotes.
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
            c if breaks(c) && u32::from(c) > 0xffff => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
            c if breaks(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character is a control character, ends a line, is invisible, or is invalid in YAML.
fn breaks(c: char) -> bool {
    is_unseen(c) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Returns a text as a value of a plan. The text's `{{`, `{%` and `{#`, which begin templates in a plan, are
/// escaped.
pub(super) fn text_value(text: &str) -> String {
    scalar(&templates_as(text, |begin| format!("{{{{ '{begin}' }}}}")))
}

/// Escapes a text of a server's command, flags or variables, in which each cell expands templates again.
pub(super) fn cell_text(text: &str) -> String {
    templates_as(text, |begin| format!("{{{{ \"{{{{ '{begin}' }}}}\" }}}}"))
}

/// Replaces each occurrence of the characters that begin a template.
fn templates_as(text: &str, instead: impl Fn(&str) -> String) -> String {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = ["{{", "{%", "{#"].iter().filter_map(|begin| rest.find(begin)).min() {
        value.push_str(&rest[..at]);
        value.push_str(&instead(&rest[at..at + 2]));
        rest = &rest[at + 2..];
    }
    value + rest
}

/// Returns a list of names in YAML's flow style.
pub(super) fn list(names: &[String]) -> String {
    format!("[{}]", names.iter().map(|name| scalar(name)).collect::<Vec<_>>().join(", "))
}

/// Returns the number of elements of a list in YAML's flow style; any other value counts as one element.
pub(super) fn list_length(value: &str) -> usize {
    match foreign::tree(value, Format::Yaml, 1_000_000).map(|list| list.value) {
        Ok(Value::List(list)) => list.len().max(1),
        _ => 1,
    }
}

/// Returns the axis, the lower and the upper bound of a search written in YAML's flow style; `None` if a
/// bound is not a number above 0.
pub(super) fn search_range(value: &str) -> Option<(String, f64, f64)> {
    let Value::Table(search) = foreign::tree(value, Format::Yaml, 1_000_000).ok()?.value else { return None };
    let (axis, range) = search.into_iter().find(|(key, _)| matches!(key.as_str(), "qps" | "batch_size"))?;
    let Value::Table(bounds) = range.value else { return None };
    let bound = |key: &str| -> Option<f64> {
        let (_, bound) = bounds.iter().find(|(name, _)| name == key)?;
        let Value::Number(digits) = &bound.value else { return None };
        digits.parse().ok().filter(|number| *number > 0.0)
    };
    Some((axis, bound("from")?, bound("to")?))
}

/// Returns a YAML table on one line. The values must already be written in YAML.
pub(super) fn table<'a>(entries: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let entries = entries.into_iter().map(|(name, value)| format!("{}: {value}", scalar(name)));
    format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
}

/// Returns the reference to a secret in an environment variable.
pub(super) fn secret(variable: &str) -> String {
    format!("{{ secret: {} }}", scalar(&format!("env:{variable}")))
}

/// Returns a name for a table's entry, derived from its name in the source; `otherwise` if that name has no
/// usable character or contains a secret.
pub(super) fn name_of(text: &str, otherwise: &str) -> String {
    if holds(text) {
        return otherwise.to_owned();
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(LONGEST_NAME).collect();
    let name = name.trim_matches(['-', '.', '_']);
    if name.is_empty() { otherwise.to_owned() } else { name.to_owned() }
}

/// Returns a text on one line, truncated to the length of a comment.
pub(super) fn one_line(text: &str) -> String {
    let line: String = text.chars().map(|c| if breaks(c) { ' ' } else { c }).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Returns seconds as a duration of a plan, limited to a year, which is longer than any run.
pub(super) fn seconds(seconds: f64) -> String {
    let millis = (seconds.clamp(0.0, 31_536_000.0) * 1000.0).round() as u64;
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
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
}
