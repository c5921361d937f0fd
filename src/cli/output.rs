//! Data on stdout, errors on stderr. A reader that went away (`| head`) is not an error. Texts from a plan,
//! a server or a file cannot move the cursor or reverse the text.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::report::format::fitted;
use crate::units::text::{is_unseen, page};

/// Prints a text for people, and adds a line end if it has none.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    write(&page(text))
}

/// Prints a text for people, wrapped to the width of the screen, if there is one.
pub(super) fn print_fitted(text: &str) -> Result<(), Failure> {
    print(&fitted(text))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Unexpected(error.into())),
        _ => Ok(()),
    }
}

/// Prints a value as indented JSON, with characters that a terminal interprets or hides written as escapes:
/// the value is the same.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Unexpected(error.into()))?;
    write(&escaped(&text))
}

/// Escapes all invisible characters of a JSON text except line ends. They occur only within strings.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unseen(c) && c != '\n' {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}
