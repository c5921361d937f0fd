//! Parses YAML text into a tree. This is the only file that uses the YAML crate.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Location, Spanned};

use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Entry, Node, Value};

/// Maximum nesting depth: more than any plan needs, and small enough for every stack.
const DEEPEST: usize = 32;

/// Parses YAML text. A syntax error ends the parsing, because the text after it cannot be trusted.
pub(crate) fn read(text: &str, most_nodes: usize) -> (Option<Node>, Vec<Diagnostic>) {
    match serde_yaml::from_str_with_options::<Spanned<Raw>>(text, options(most_nodes)) {
        Ok(raw) => (Some(raw.into_node()), Vec::new()),
        Err(error) => (None, vec![diagnostic(error.without_snippet(), text)]),
    }
}

fn options(most_nodes: usize) -> serde_yaml::Options {
    serde_yaml::options! {
        // `on`, `off`, `yes` and `no` are texts, as in YAML 1.2; `017` and `1_000` are not numbers
        // either.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        // All duplicates of a file are needed, not only the first, so they are collected from the tree.
        duplicate_keys: serde_yaml::DuplicateKeyPolicy::PassThrough,
        with_snippet: false,
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: most_nodes },
        budget: serde_yaml::budget! {
            max_depth: DEEPEST,
            max_nodes: most_nodes,
            max_events: 4 * most_nodes,
            max_recorded_anchor_events: 4 * most_nodes,
            max_documents: 2,
        },
    }
}

fn diagnostic(error: &serde_yaml::Error, text: &str) -> Diagnostic {
    use serde_yaml::Error as E;
    let too_large = || {
        let message = format!("the file is nested deeper than {DEEPEST} levels or has too many values for a plan");
        let remedy = "check the indentation, and aliases that repeat aliases";
        (Code::TooLarge, message, remedy.to_owned())
    };
    let mut span = error.location().map(|location| span_of(location, text));
    if let (E::MultipleDocuments { .. }, Some(span)) = (error, &mut span)
        && let Some(line) = text[..span.start].rfind("\n---")
    {
        *span = line + 1..line + 4;
    }
    let (code, message, remedy) = match error {
        // If a limit is exceeded in an alias, the error is wrapped in another one, and only its message
        // can be inspected.
        E::Budget { .. } => too_large(),
        E::AliasError { .. } if plain_message(error).contains("exceeded") => too_large(),
        E::MultipleDocuments { .. } => (
            Code::Syntax,
            "the file has more than one YAML document".to_owned(),
            "keep one plan per file: remove the line `---` and the text after it".to_owned(),
        ),
        other => {
            let plain = plain_message(other);
            let remedy = syntax_remedy(&plain, text, span.as_ref());
            (Code::Syntax, format!("this is not YAML: {plain}"), remedy)
        }
    };
    Diagnostic::new(code, message).at(span).remedy(remedy)
}

/// The crate's message, without the repeated line and column.
fn plain_message(error: &serde_yaml::Error) -> String {
    let mut options = serde_yaml::RenderOptions::default();
    options.snippets = serde_yaml::SnippetMode::Off;
    let message = error.render_with_options(options);
    let first = message.lines().next().unwrap_or_default();
    let first = first.split(" at line ").next().unwrap_or(first);
    let first = first.split(" at byte ").next().unwrap_or(first).trim();
    match first {
        first if first.starts_with("non-finite float") => first
            .replace("non-finite float", "the number")
            .replace("rejected by the configured policy", "is not finite"),
        "invalid type: map, expected a string as key" => "a key is a table, and must be a string".to_owned(),
        "invalid type: sequence, expected a string as key" => "a key is a list, and must be a string".to_owned(),
        "simple key expected ':'" => "a key without a `:`".to_owned(),
        first => first.to_owned(),
    }
}

/// The usual remedy for a YAML syntax error.
fn syntax_remedy(message: &str, text: &str, span: Option<&Span>) -> String {
    let line = span.map_or("", |span| {
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        text[start..].lines().next().unwrap_or_default()
    });
    let key_end =
        line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | '{' | '[' | ','))).unwrap_or(0);
    let indented_by_tab = line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t');
    if message.ends_with("is not finite") {
        "write a number in digits; to set no limit, remove the line".to_owned()
    } else if message.contains("unclosed") {
        "close it, or remove it".to_owned()
    } else if message.contains("quoted scalar") {
        "close the quote opened on a line above".to_owned()
    } else if indented_by_tab || message.contains("tabs") {
        "indent with spaces; YAML does not allow tabs".to_owned()
    } else if message.contains("unknown anchor") {
        "define it above with `&` and this name, or fix the name".to_owned()
    } else if line.trim_start().starts_with("{%") {
        "templates are allowed inside values, not around lines: write the entries out".to_owned()
    } else if line.contains("{{") {
        "put quotes around a string with braces".to_owned()
    } else if message.contains("may not precede")
        || (message.contains("key without") && line[key_end..].starts_with(':') && !line[key_end..].starts_with(": "))
    {
        "put a space after the `:`".to_owned()
    } else if message.contains("key without")
        && line.trim_start().starts_with('-')
        && !line.trim_start().starts_with("- ")
    {
        "put a space after the `-` of a list".to_owned()
    } else if message.contains("did not find expected key") {
        "indent this line like the other keys of its table, or close an open quote or bracket above it".to_owned()
    } else if message.contains("mapping values") {
        "put quotes around a string with a colon, or start a new line for the next key".to_owned()
    } else {
        "check this line and the one before: indentation, an open quote or bracket, a missing `:` or space after it"
            .to_owned()
    }
}

/// The parser reports byte positions for values, but only line and column for syntax errors.
fn span_of(location: Location, text: &str) -> Span {
    if location.span().byte_offset().is_some() {
        return crate::plan::text::span::clamp(bytes(location), text);
    }
    let number = |value: u64| usize::try_from(value).unwrap_or(0).saturating_sub(1);
    let line = number(location.line());
    let line_start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let column: usize = text[line_start..].chars().take(number(location.column())).map(char::len_utf8).sum();
    crate::plan::text::span::clamp(line_start + column..line_start + column + 1, text)
}

/// A value whose places have not been converted to bytes yet.
enum Raw {
    Leaf(Value),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Key>, Spanned<Raw>)>),
}

/// A key: any scalar, as the text in which it was written.
struct Key(String);

fn bytes(location: Location) -> Span {
    let part = |value: Option<u64>| value.and_then(|value| usize::try_from(value).ok()).unwrap_or(0);
    let start = part(location.span().byte_offset());
    start..start + part(location.span().byte_len())
}

trait IntoNode {
    fn into_node(self) -> Node;
}

impl IntoNode for Spanned<Raw> {
    /// The place of an aliased value is its definition, because this is the place to change.
    fn into_node(self) -> Node {
        let value = match self.value {
            Raw::Leaf(value) => value,
            Raw::List(items) => Value::List(items.into_iter().map(IntoNode::into_node).collect()),
            Raw::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| Entry {
                        key_span: bytes(key.defined),
                        key: key.value.0,
                        node: value.into_node(),
                    })
                    .collect(),
            ),
        };
        Node::new(value, bytes(self.defined))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string as key")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key, E> {
                Ok(Key(text.to_owned()))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Key, E> {
                Ok(Key(value.to_string()))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Key, E> {
                Ok(Key(value.to_string()))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Key, E> {
                Ok(Key(value.to_string()))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Key, E> {
                Ok(Key(value.to_string()))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Key, E> {
                Ok(Key("null".to_owned()))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Leaf(Value::Bool(value)))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Leaf(Value::Int(value.into())))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Leaf(Value::Int(value.into())))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Leaf(Value::Float(value)))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Leaf(Value::Text(text.to_owned())))
    }
    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Leaf(Value::Null))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Raw, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Raw::List)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}
