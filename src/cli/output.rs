//! Data on stdout, errors on stderr. A reader that went away (`| head`) is no error.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use super::Failure;

/// Prints a text as it is, with a line end if it has none.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Unexpected(error.into())),
        _ => Ok(()),
    }
}

/// Prints an error on stderr; that nobody reads it must not hide the exit code behind a panic.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
}

/// Prints a value as indented JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Unexpected(error.into()))?;
    print(&text)
}
