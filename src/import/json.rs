//! Parses JSON files.

use serde_json::Value;

use super::error::ImportError;

/// Parses JSON. The parser rejects text that is nested more than 128 levels deep.
pub(super) fn json(name: &str, text: &str) -> Result<Value, ImportError> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| ImportError::Json {
        name: name.to_owned(),
        line: error.line(),
        column: error.column(),
        reason: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
    })
}
