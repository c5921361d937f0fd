//! Errors on stderr.

use std::io::Write;

use crate::units::text::page;

/// Prints an error on stderr; a closed stderr must not hide the exit code behind a panic.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", page(text.trim_end()));
}
