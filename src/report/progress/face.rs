//! A face of a sweep under way: what draws [`LiveSweep`] and prints what happens.

use std::io::Write;

use super::state::LiveSweep;

/// A face.
pub(super) trait Face: Send {
    /// Shows how things stand; called a few times a second.
    fn draw(&mut self, now: &LiveSweep);
    /// Shows whole lines of what happened.
    fn print(&mut self, text: &str);
    /// Takes away what is not to stay.
    fn close(&mut self);
}

/// Writes to stderr; that it is closed must not end a sweep.
pub(super) fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
