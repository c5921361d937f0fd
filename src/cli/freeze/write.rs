//! Writes values as YAML with a comment after each, which the YAML crate cannot do.

use serde_json::{Map, Value};

use crate::plan::Step;
use crate::units::text::is_unseen;

/// The comment after a value.
pub(crate) struct Comment(pub String);

/// Column where comments begin, if the value is short enough.
const COLUMN: usize = 56;

/// Writes a table, one entry per line, with the comment that `comment` returns for each value's path.
pub(crate) fn table(
    table: &Map<String, Value>,
    path: &mut Vec<Step>,
    comment: &dyn Fn(&[Step]) -> Comment,
    out: &mut String,
) {
    for (key, value) in table {
        let indent = "  ".repeat(path.len());
        let head = format!("{indent}{}:", text(key));
        path.push(Step::from(key.as_str()));
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push_str(&head);
                out.push('\n');
                self::table(inner, path, comment, out);
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                out.push_str(&head);
                out.push('\n');
                for (at, item) in items.iter().enumerate() {
                    path.push(Step::Index(at));
                    line(&format!("{indent}  - {}", flow(item)), &comment(path), out);
                    path.pop();
                }
            }
            value => line(&format!("{head} {}", flow(value)), &comment(path), out),
        }
        path.pop();
    }
}

fn line(value: &str, comment: &Comment, out: &mut String) {
    let Comment(comment) = comment;
    out.push_str(&format!("{value:<COLUMN$}  # {comment}\n"));
}

/// Returns a value in one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(table) if table.is_empty() => "{}".to_owned(),
        Value::Object(table) => {
            let entries: Vec<String> =
                table.iter().map(|(key, value)| format!("{}: {}", text(key), flow(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns a string in a form that is read back unchanged, neither as another YAML type nor as a template.
fn text(text: &str) -> String {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "~"];
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '%' | '-');
    let first = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/'));
    let like_a_number = text.parse::<f64>().is_ok()
        || text.starts_with(|c: char| c.is_ascii_digit()) && !text.ends_with(['s', 'm', 'h', '%', 'n'])
        || text.starts_with('0') && text.len() > 1 && !text[1..].starts_with(['.', 's', '%']);
    let reserved = WORDS.contains(&text.to_ascii_lowercase().as_str()) || matches!(text, "y" | "n" | "Y" | "N");
    if first && text.chars().all(plain) && !like_a_number && !reserved {
        return text.to_owned();
    }
    // A text that contains `{{` or `{%` would be read back as a template.
    let literal = match text.contains("{{") || text.contains("{%") {
        true => text.replace("{{", "\u{0}").replace("{%", "{{ '{%' }}").replace('\u{0}', "{{ '{{' }}"),
        false => text.to_owned(),
    };
    let quoted = Value::String(literal).to_string();
    let escape = |c: char| match c {
        c if is_unseen(c) && u32::from(c) > 0xffff => format!("\\U{:08x}", u32::from(c)),
        c if is_unseen(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    quoted.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Format, parse};

    fn read_back(notes: &str) -> Option<String> {
        let plan = format!(
            "sweepline: 1\nname: a\nnotes: {}\nendpoints: {{ e: {{ engine: mock }} }}\nmodels: {{ m: {{ id: m }} }}\n\
             sweeps: {{ s: {{ matrix: {{ qps: 1 }} }} }}\n",
            text(notes)
        );
        let loaded = parse("p.yaml".as_ref(), &plan, Format::Yaml).unwrap_or_else(|errors| panic!("{errors}"));
        loaded.plan.notes.clone()
    }

    #[test]
    fn texts_come_back_as_they_are() {
        for notes in [
            "a",
            "",
            "1",
            "1e5",
            "0x10",
            "017",
            "1_000",
            "120s",
            "1%",
            "on",
            "Null",
            "-",
            "a: b",
            "# a",
            "'\"\\",
            "{{ n }}",
            "{{{",
            "{%{{%}}",
            "é\n\t\u{7f}\u{2028}",
            " a ",
            "inf",
            "5m",
            "0.5s",
            "2026-01-01",
            "[a]",
            "&a",
            "*a",
            "!a",
            "@",
            "a\u{202e}b\u{200b}\u{e0001}",
        ] {
            assert_eq!(read_back(notes).as_deref(), Some(notes), "{}", text(notes));
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(notes in "[ -~é\n{}%\"'\\\\]{0,24}") {
            prop_assert_eq!(read_back(&notes), Some(notes));
        }
    }
}
