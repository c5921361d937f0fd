//! Converts values of the plan to minijinja values, and back.

use minijinja::Value as Jinja;
use minijinja::value::ValueKind;

use crate::plan::text::span::Span;
use crate::plan::text::tree::{Entry, Node, Value};

/// Maximum length of a text that a template may produce.
const MOST_TEXT: usize = 1 << 16;

/// The remaining budget for new values.
pub(super) struct Room {
    /// Number of values.
    pub nodes: usize,
    /// Number of bytes of text.
    pub bytes: usize,
}

impl Room {
    /// Reserves space for `more` bytes that are appended to a text of `length` bytes; returns false if
    /// not enough is left.
    pub(crate) fn takes(&mut self, length: usize, more: usize) -> bool {
        let left = self.bytes.checked_sub(more).filter(|_| length + more <= MOST_TEXT);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }

    /// Reserves space for a copy of a value; returns false if not enough is left.
    pub(crate) fn takes_copy(&mut self, nodes: usize, bytes: usize) -> bool {
        let left = self.nodes.checked_sub(nodes).zip(self.bytes.checked_sub(bytes));
        (self.nodes, self.bytes) = left.unwrap_or((self.nodes, self.bytes));
        left.is_some()
    }
}

/// The reason why a result is not a value of a plan.
#[derive(Debug, PartialEq)]
pub(super) enum NoValue {
    /// The result is none or undefined.
    Nothing,
    /// A number that is infinite or NaN.
    NoNumber,
    /// The limits are exceeded.
    TooMuch,
    /// Neither a number, a string, true or false, a list nor a table.
    Other,
}

/// A value in the form that expressions use.
pub(super) fn to_jinja(node: &Node) -> Jinja {
    match &node.value {
        Value::Null => Jinja::from(()),
        Value::Bool(value) => Jinja::from(*value),
        Value::Int(value) => i64::try_from(*value).map_or_else(|_| Jinja::from(*value), Jinja::from),
        Value::Float(value) => Jinja::from(*value),
        Value::Text(text) => Jinja::from(text.as_str()),
        Value::List(items) => items.iter().map(to_jinja).collect::<Vec<Jinja>>().into(),
        Value::Map(entries) => {
            Jinja::from_pairs(entries.iter().map(|entry| (entry.key.clone(), to_jinja(&entry.node))))
        }
    }
}

/// Converts the result of an expression to a value of the plan at `span`.
pub(super) fn from_jinja(value: &Jinja, span: &Span, room: &mut Room) -> Result<Value, NoValue> {
    room.nodes = room.nodes.checked_sub(1).ok_or(NoValue::TooMuch)?;
    let inner = |value: &Jinja, room: &mut Room| Ok(Node::new(from_jinja(value, span, room)?, span.clone()));
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => return Err(NoValue::Nothing),
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => number(value)?,
        ValueKind::String => {
            let text = value.as_str().ok_or(NoValue::Other)?;
            if !room.takes(0, text.len()) {
                return Err(NoValue::TooMuch);
            }
            Value::Text(text.to_owned())
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().map_err(|_| NoValue::Other)?;
            Value::List(items.map(|item| inner(&item, room)).collect::<Result<_, _>>()?)
        }
        ValueKind::Map => {
            let keys = value.try_iter().map_err(|_| NoValue::Other)?;
            let entry = |key: Jinja| {
                let node = inner(&value.get_item(&key).map_err(|_| NoValue::Other)?, room)?;
                Ok(Entry { key: key.to_string(), key_span: span.clone(), node })
            };
            Value::Map(keys.map(entry).collect::<Result<_, _>>()?)
        }
        _ => return Err(NoValue::Other),
    })
}

/// Arithmetic leaves noise beyond the significant digits (0.1 * 3), and a division without remainder
/// must yield a whole number.
fn number(value: &Jinja) -> Result<Value, NoValue> {
    if value.is_integer() {
        return i128::try_from(value.clone()).map(Value::Int).map_err(|_| NoValue::NoNumber);
    }
    let exact = f64::try_from(value.clone()).map_err(|_| NoValue::Other)?;
    let rounded: f64 = format!("{exact:.14e}").parse().map_err(|_| NoValue::NoNumber)?;
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    match rounded {
        number if !number.is_finite() => Err(NoValue::NoNumber),
        number if number.fract() == 0.0 && number.abs() < WHOLE => Ok(Value::Int(number as i128)),
        number => Ok(Value::Float(number)),
    }
}

/// A value as part of a text; `None` for lists and tables.
pub(super) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        Value::Float(value) => Some(value.to_string()),
        Value::Text(text) => Some(text.clone()),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

/// Number of bytes that an expression may copy for each use of a value.
pub(super) fn size(node: &Node) -> usize {
    16 + match &node.value {
        Value::Text(text) => text.len(),
        Value::List(items) => items.iter().map(size).sum(),
        Value::Map(entries) => entries.iter().map(|entry| entry.key.len() + size(&entry.node)).sum(),
        _ => 0,
    }
}
