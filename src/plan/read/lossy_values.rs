//! Values that parsing would silently change. A version that is written as a number loses its trailing
//! zero, and `no` is a text, which an expression treats as true.

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::scalar::Scalar;
use crate::plan::read::reader::read;
use crate::plan::text::span::{Span, clamp};
use crate::plan::text::tree::{Node, Value};

/// Words that other YAML parsers treat as true or false, but that are texts here.
const SWITCHES: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];

/// Reports variables whose value is a word such as `yes` or `no` without quotes, before any expression uses
/// them.
pub(crate) fn switches(tree: &mut Node, text: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let Value::Map(entries) = &mut tree.value else { return found };
    if let Some(vars) = entries.iter_mut().find(|entry| entry.key == "vars") {
        switch(&mut vars.node, text, &mut found);
    }
    found
}

fn switch(node: &mut Node, text: &str, found: &mut Vec<Diagnostic>) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| switch(item, text, found)),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| switch(&mut entry.node, text, found)),
        Value::Text(word) if SWITCHES.contains(&word.to_ascii_lowercase().as_str()) => {
            if bare(&node.span, text) != Some(word.as_str()) {
                return;
            }
            let message = format!("`{word}` is a string here, and every string counts as true");
            let remedy = "write true or false, or put the value in quotes";
            found.push(Diagnostic::new(Code::WrongValue, message).at(Some(node.span.clone())).remedy(remedy));
            node.fail();
        }
        _ => {}
    }
}

/// Reports server facts that are numbers written in a different notation than the one in which they are stored,
/// and texts about endpoints and models that a template creates from such numbers. These must be reported
/// because versions, flags and model ids are compared character by character.
pub(crate) fn lost(tree: &mut Node, text: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let Value::Map(tables) = &mut tree.value else { return found };
    for table in tables.iter_mut().filter(|table| matches!(table.key.as_str(), "endpoints" | "models")) {
        let Value::Map(names) = &mut table.node.value else { continue };
        for name in names {
            let Value::Map(fields) = &mut name.node.value else { continue };
            for field in fields {
                look(&mut field.node, field.key == "server", text, &mut found);
            }
        }
    }
    found
}

fn look(node: &mut Node, fact: bool, text: &str, found: &mut Vec<Diagnostic>) {
    match &mut node.value {
        Value::List(items) => return items.iter_mut().for_each(|item| look(item, fact, text, found)),
        Value::Map(entries) => return entries.iter_mut().for_each(|entry| look(&mut entry.node, fact, text, found)),
        _ => {}
    }
    let made = node.via.iter().map(|(_, span)| span);
    let mut from_vars = made.filter_map(|span| changed(span, text).map(|number| (span.clone(), number)));
    let lost = match (&node.value, node.via.is_empty()) {
        (Value::Int(_) | Value::Float(_), true) if fact => {
            changed(&node.span, text).map(|number| (node.span.clone(), number))
        }
        // Only a number that the template passes on unchanged is reported, because the result of a
        // computation no longer has an original spelling.
        (Value::Int(_) | Value::Float(_), false) if fact => {
            let kept = read::<Scalar>(node).map(|value| value.to_string()).unwrap_or_default();
            from_vars.find(|(_, number)| number.kept == kept)
        }
        (Value::Text(_), false) => from_vars.next(),
        _ => None,
    };
    let Some((span, Changed { written, kept })) = lost else { return };
    let message = format!("`{written}` is read as the number {kept}");
    let remedy = format!("write \"{written}\" in quotes, or {kept} if a number is intended");
    found.push(Diagnostic::new(Code::WrongValue, message).at(Some(span)).remedy(remedy));
    node.fail();
}

/// A number whose written form differs from the stored form.
struct Changed {
    /// The number as written.
    written: String,
    /// The number as stored.
    kept: String,
}

/// The number written at a place, if it would be stored in another notation: `0.10`, `1.0`, `1e5`, `0x1f`.
fn changed(span: &Span, text: &str) -> Option<Changed> {
    let written = bare(span, text)?.trim();
    let digits = written.replace('_', "");
    let digits = digits.strip_prefix('+').unwrap_or(&digits);
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    let zero_first = unsigned.len() > 1 && unsigned.starts_with('0') && unsigned.as_bytes()[1].is_ascii_digit();
    // `007` is a text; here, `inf` and `nan` are treated as texts too.
    if zero_first || !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    // Of the numbers with an exponent, only those in plain digits, like `12e3`, may be meant as the id of a commit.
    if unsigned.contains(['e', 'E']) && !unsigned.starts_with("0x") && unsigned.contains(['.', '-', '+']) {
        return None;
    }
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)];
    let radix = radix.iter().find_map(|(mark, radix)| Some((unsigned.strip_prefix(mark)?, *radix)));
    let kept = match radix {
        Some((rest, radix)) => i128::from_str_radix(rest, radix).ok()?.to_string(),
        None if digits.parse::<i128>().is_ok() => return None,
        None => {
            let number = Node::new(Value::Float(digits.parse().ok()?), span.clone());
            read::<Scalar>(&number).ok()?.to_string()
        }
    };
    (kept != digits).then(|| Changed { written: written.to_owned(), kept })
}

/// The text written at a place, if it is not quoted.
fn bare<'t>(span: &Span, text: &'t str) -> Option<&'t str> {
    let span = clamp(span.clone(), text);
    let quoted = text[..span.start].ends_with(['"', '\'']) || text[span.clone()].starts_with(['"', '\'']);
    (!quoted).then(|| &text[span])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_lose_something_are_told() {
        for (written, kept) in [
            ("0.10", Some("0.1")),
            ("1.0", Some("1")),
            ("0x1f", Some("31")),
            ("12e3", Some("12000")),
            ("8", None),
            ("-8", None),
            ("0", None),
            ("0.9", None),
            ("1_000", None),
            ("1e-7", None),
            ("007", None),
            ("inf", None),
            ("0.33.0", None),
            ("\"0.10\"", None),
        ] {
            let found = changed(&(0..written.len()), written).map(|changed| changed.kept);
            assert_eq!(found.as_deref(), kept, "{written}");
        }
    }
}
