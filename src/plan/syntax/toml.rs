//! Parses TOML text into a tree. This is the only file that uses the TOML crate.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::plan::diagnostic::error::{Code, Diagnostic, MOST_MISTAKES};
use crate::plan::text::span::{Span, clamp};
use crate::plan::text::tree::{Entry, Node, Value};

/// The parser's message for a duplicate key.
const DUPLICATE: &str = "duplicate key";

/// Parses TOML text; several syntax errors of a file are found at once. Returns a tree if it can be
/// trusted, which is the case if there are no errors other than duplicate keys.
pub(crate) fn read(text: &str, most_nodes: usize) -> (Option<Node>, Vec<Diagnostic>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let span = table.span();
    let node = Node::new(map(table.into_inner()), span);
    if node.count() > most_nodes {
        return (None, vec![Diagnostic::new(Code::TooLarge, "the file has too many values for a plan")]);
    }
    let trusted = errors.iter().all(|error| error.message().contains(DUPLICATE));
    let found = first_of_lines(&errors, text).into_iter().map(|error| diagnostic(error, text, &node)).collect();
    (trusted.then_some(node), found)
}

/// The errors by place, up to the limit. Only the first syntax error of each line is included, because
/// others on the same line are usually consequences of the first.
fn first_of_lines<'e>(errors: &'e [toml::de::Error], text: &str) -> Vec<&'e toml::de::Error> {
    let start = |error: &toml::de::Error| error.span().map_or(0, |span| clamp(span, text).start);
    let mut sorted: Vec<&toml::de::Error> = errors.iter().collect();
    sorted.sort_by_key(|error| start(error));
    let mut told: Vec<&toml::de::Error> = Vec::new();
    for error in sorted {
        let same_line = told.last().is_some_and(|last| !text[start(last)..start(error)].contains('\n'));
        if !same_line || error.message().contains(DUPLICATE) {
            told.push(error);
        }
        if told.len() >= MOST_MISTAKES {
            break;
        }
    }
    told
}

fn diagnostic(error: &toml::de::Error, text: &str, tree: &Node) -> Diagnostic {
    let span = error.span().map(|span| clamp(span, text));
    let message = error.message();
    if message.contains(DUPLICATE) {
        let span = span.unwrap_or_default();
        let key = text[span.clone()].trim_matches(['"', '\'']).to_owned();
        let first = only_key(tree, &key).filter(|first| *first != span).map(|first| (first, "first here".to_owned()));
        return Diagnostic::duplicate_key(&key, span, first);
    }
    let bare = span.as_ref().map_or("", |span| bare_word(text, span.start));
    let remedy = syntax_remedy(message, bare, line_at(text, span.as_ref()));
    // The parser reports a bare word as a misspelt `true` or `nan`, depending on its first letter.
    let is_bare = message.contains("invalid boolean") || message.contains("expected `nan`");
    let message = if is_bare { "a string without quotes" } else { message };
    let code = if message.contains("recursion") { Code::TooLarge } else { Code::Syntax };
    Diagnostic::new(code, format!("this is not TOML: {message}")).at(span).remedy(remedy)
}

/// The usual remedy for a TOML syntax error.
fn syntax_remedy(message: &str, bare: &str, line: &str) -> &'static str {
    let key_end = line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | '"' | '.')));
    let has_colon = key_end.is_some_and(|at| at > 0 && line[at..].starts_with(':'));
    match bare.to_ascii_lowercase().as_str() {
        _ if has_colon => "TOML sets a key with `=`: name = \"chat\"",
        _ if message.contains("recursion") => "no plan needs such deep nesting",
        "true" | "false" => "write it in lower case: true or false",
        "none" | "null" | "nil" => "TOML has no empty value: remove the line",
        _ if message.contains("expected `nan`") => "put quotes around a string: name = \"chat\"",
        _ if ["must be quoted", "unquoted", "invalid boolean"].iter().any(|words| message.contains(words)) => {
            "put quotes around a string: name = \"chat\""
        }
        _ if message.contains("literal string") || message.contains("basic string") => {
            "close the quote on the same line with the same character"
        }
        _ if message.contains("unclosed table") => "close the header: [endpoints.NAME]",
        _ => "check this line for an open quote or bracket, a string without quotes, or a missing `=`",
    }
}

/// The word that contains a place.
fn bare_word(text: &str, at: usize) -> &str {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let start = text[..at]
        .rfind(|c| !is_word(c))
        .map_or(0, |before| before + text[before..].chars().next().map_or(1, char::len_utf8));
    let end = text[at..].find(|c| !is_word(c)).map_or(text.len(), |after| at + after);
    &text[start..end]
}

/// The line that contains a place.
fn line_at<'t>(text: &'t str, span: Option<&Span>) -> &'t str {
    let start = span.map_or(0, |span| text[..span.start].rfind('\n').map_or(0, |before| before + 1));
    text[start..].lines().next().unwrap_or_default()
}

/// The place of the key, if exactly one table has it, because TOML's parser does not report the table.
fn only_key(node: &Node, key: &str) -> Option<Span> {
    fn collect(node: &Node, key: &str, found: &mut Vec<Span>) {
        match &node.value {
            Value::List(items) => items.iter().for_each(|item| collect(item, key, found)),
            Value::Map(entries) => entries.iter().for_each(|entry| {
                if entry.key == key {
                    found.push(entry.key_span.clone());
                }
                collect(&entry.node, key, found);
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(node, key, &mut found);
    (found.len() == 1).then(|| found.remove(0))
}

fn map(table: DeTable<'_>) -> Value {
    let entries = table.into_iter().map(|(key, value)| Entry {
        key_span: key.span(),
        key: key.into_inner().into_owned(),
        node: node(value),
    });
    Value::Map(entries.collect())
}

fn node(value: Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => integer(&number),
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
        DeValue::Boolean(value) => Value::Bool(value),
        // No field of a plan is a date, so a date is converted to a text, which results in the usual
        // error for the field.
        DeValue::Datetime(date) => Value::Text(date.to_string()),
        DeValue::Array(items) => Value::List(items.into_iter().map(node).collect()),
        DeValue::Table(table) => map(table),
    };
    Node::new(value, span)
}

/// A seed may exceed TOML's limit of 64 bits, so the digits are parsed here.
fn integer(number: &DeInteger<'_>) -> Value {
    let digits = number.as_str();
    i128::from_str_radix(digits, number.radix())
        .map(Value::Int)
        .unwrap_or_else(|_| Value::Float(digits.parse().unwrap_or(f64::INFINITY)))
}
