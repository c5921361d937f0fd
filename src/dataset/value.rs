//! Reads typed values from an entry; each error names the field.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::error::Bad;
use super::skipped::Reason;

/// An entry: field names and values.
pub(super) type Fields = Map<String, Value>;

/// Shortens text from a file to one short line for a message.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let short: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() { format!("{short}…") } else { short }
}

/// Returns the kind of a value, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the error that `name` has the wrong type.
pub(super) fn wrong(name: &str, value: &Value, wanted: &str) -> Bad {
    let found = match value {
        Value::String(text) => format!("`{}`", shown(text)),
        Value::Number(number) => format!("`{number}`"),
        other => kind(other).to_owned(),
    };
    Bad::new(Reason::WrongValue, format!("`{}` is {found}, not {wanted}", shown(name)))
}

fn missing(name: &str) -> Bad {
    Bad::new(Reason::Missing, format!("`{}` is missing", shown(name)))
}

fn negative(name: &str, value: &Value) -> Bad {
    Bad::new(Reason::Negative, format!("`{}` is {value}, below zero", shown(name)))
}

/// Returns the value at `name`; a dot accesses a field of an object, unless there is a field with the whole
/// name. Null and empty CSV fields are absent.
pub(super) fn get<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    let found = fields.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        get(fields.get(first)?.as_object()?, rest)
    });
    found.filter(|value| !value.is_null())
}

/// Returns a required value.
pub(super) fn need<'a>(fields: &'a Fields, name: &str) -> Result<&'a Value, Bad> {
    get(fields, name).ok_or_else(|| missing(name))
}

/// Returns text.
pub(super) fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str, Bad> {
    value.as_str().ok_or_else(|| wrong(name, value, "text"))
}

/// Returns text, or a number as text, because both occur as names.
pub(super) fn label(name: &str, value: &Value) -> Result<String, Bad> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(wrong(name, other, "text or a number")),
    }
}

/// Returns a number of tokens, which must be a whole number from 0. It may also be written as text (CSV)
/// or as `374.0`, as in data frames.
pub(super) fn count(name: &str, value: &Value) -> Result<u32, Bad> {
    let number = number(name, value)?;
    if number < 0.0 {
        return Err(negative(name, value));
    }
    if number.fract() != 0.0 || number > f64::from(u32::MAX) {
        return Err(wrong(name, value, "a whole number of tokens"));
    }
    Ok(number as u32)
}

/// Returns a finite number, which may be written as text.
fn number(name: &str, value: &Value) -> Result<f64, Bad> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite()).ok_or_else(|| wrong(name, value, "a number"))
}

/// Returns an instant in nanoseconds since an origin that all entries share. The value is a number from 0
/// in units of `unit` nanoseconds, or a date with a time (UTC if it has no zone).
pub(super) fn instant(name: &str, value: &Value, unit: u64) -> Result<i64, Bad> {
    if let Value::String(text) = value
        && let Some(nanos) = date(text.trim())
    {
        return nanos.ok_or_else(|| wrong(name, value, "a time between the years 1678 and 2262"));
    }
    // Whole numbers stay exact, because a float cannot represent the nanoseconds of this century
    // exactly.
    let whole = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    if let Some(whole) = whole {
        let nanos = whole.checked_mul(unit).and_then(|nanos| i64::try_from(nanos).ok());
        return nanos.ok_or_else(|| wrong(name, value, "a time that fits into 292 years"));
    }
    let wanted = |_| wrong(name, value, "a time: a number, or a date like 2024-05-10 00:00:00.009930");
    let nanos = number(name, value).map_err(wanted)? * unit as f64;
    match nanos {
        nanos if nanos < 0.0 => Err(negative(name, value)),
        nanos if nanos >= i64::MAX as f64 => Err(wrong(name, value, "a time that fits into 292 years")),
        nanos => Ok(nanos.round() as i64),
    }
}

/// Returns a date with a time as nanoseconds since 1970, or `Some(None)` if these are out of range;
/// returns `None` if the text is not a date.
fn date(text: &str) -> Option<Option<i64>> {
    let stamp = text.parse::<Timestamp>().ok().or_else(|| {
        let local: DateTime = text.contains(['-', ':']).then(|| text.parse().ok())??;
        Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })?;
    Some(i64::try_from(stamp.as_nanosecond()).ok())
}
