//! The parts of Python and of Hugging Face's library that chat templates use.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// A template's own error, such as that roles must alternate.
pub(super) fn raise_exception(message: &str) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.to_owned()))
}

/// Returns a fixed date, because the sent text must not depend on the day. It is the date that
/// templates fall back to if there is no clock, and it has as many tokens as any other date.
pub(super) fn strftime_now(format: &str) -> Result<String, Error> {
    let date = jiff::civil::datetime(2024, 7, 26, 12, 0, 0, 0);
    let text = jiff::fmt::strtime::format(format, date);
    text.map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("strftime_now({format:?}): {error}")))
}

/// Python's `json.dumps(value, ensure_ascii=False)`: a space after each comma and colon.
pub(super) fn tojson(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let fail = |error: serde_json::Error| Error::new(ErrorKind::InvalidOperation, error.to_string());
    let indent = options.get::<Option<usize>>("indent")?;
    let mut out = Vec::new();
    match indent {
        Some(indent) => {
            let spaces = " ".repeat(indent.min(32));
            let formatter = PrettyFormatter::with_indent(spaces.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut out, formatter)).map_err(fail)?;
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)).map_err(fail)?,
    }
    Ok(Value::from_safe_string(String::from_utf8_lossy(&out).into_owned()))
}

/// JSON on one line, in Python's format.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}
