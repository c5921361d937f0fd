//! Handles `${NAME}` and `${NAME:default}` in the texts of an AIPerf configuration. Environment variables are
//! not looked up; their defaults apply.

use serde_json::Value;

use super::leaves::{Leaf, Tree};
use crate::units::text::is_variable;

/// Replaces variables by their defaults. A text that is a single variable without a default stays unchanged,
/// because it may refer to an API key.
pub(super) fn fill(tree: &mut Tree) {
    let filled: Result<(), ()> = tree.each_text(&mut |leaf| {
        if let Some(text) = leaf.value.as_str().filter(|text| text.contains("${")) {
            let (text, is_changed) = replaced(text);
            if is_changed {
                *leaf = Leaf { value: scalar(&text), id: leaf.id };
            }
        }
        Ok(())
    });
    debug_assert!(filled.is_ok());
}

/// Returns the name of the variable if the text consists of a single variable; otherwise `None`.
pub(super) fn variable(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("${")?.strip_suffix('}')?;
    let name = name.split(':').next().unwrap_or(name);
    is_variable(name).then_some(name)
}

/// Returns the text with variables replaced by their defaults, and whether any variable was replaced.
fn replaced(text: &str) -> (String, bool) {
    let (mut out, mut rest, mut is_changed) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}').map(|end| at + end) else { break };
        let (name, default) = rest[at + 2..end]
            .split_once(':')
            .map_or((&rest[at + 2..end], None), |(name, default)| (name, Some(default)));
        out.push_str(&rest[..at]);
        match default.filter(|_| is_variable(name)) {
            Some(default) => {
                out.push_str(default);
                is_changed = true;
            }
            None => out.push_str(&rest[at..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    (out, is_changed)
}

/// Parses a text into a value, as YAML does.
pub(super) fn scalar(text: &str) -> Value {
    let text = text.trim();
    match text {
        "true" | "True" => return Value::Bool(true),
        "false" | "False" => return Value::Bool(false),
        "null" | "None" | "" => return Value::Null,
        _ => {}
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Value::from(whole);
    }
    match text.parse::<f64>().ok().filter(|number| number.is_finite()) {
        Some(number) if text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => Value::from(number),
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_taken_and_references_stay() {
        assert_eq!(replaced("${A:x}/${B:1:2}"), ("x/1:2".to_owned(), true));
        assert_eq!(replaced("Bearer ${KEY}"), ("Bearer ${KEY}".to_owned(), false));
        assert_eq!(replaced("${A:x"), ("${A:x".to_owned(), false));
        assert_eq!((variable("${KEY}"), variable("${KEY:x}"), variable("a${KEY}")), (Some("KEY"), Some("KEY"), None));
        assert_eq!(scalar("30.0"), Value::from(30.0));
        assert_eq!(scalar("meta-llama/Llama"), Value::from("meta-llama/Llama"));
    }
}
