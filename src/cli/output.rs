//! Data on stdout, errors on stderr. A reader that went away (`| head`) is no error. Whatever of a plan, a server or a file
//! is in a text, nothing of it moves the cursor or turns the text around.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::report::format::fitted;
use crate::units::text::{is_unseen, page};

/// Prints a text for people, with a line end if it has none.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    write(&page(text))
}

/// Prints a text for people in lines that fit the screen, where there is one.
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

/// Prints a value as indented JSON, with the characters that a terminal obeys or hides written as escapes: the same value.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Unexpected(error.into()))?;
    write(&escaped(&text))
}

/// JSON with nothing in it that is not seen but its line ends. Outside of strings there is no other.
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
