//! A display of a running sweep: draws [`LiveSweep`] and prints events.

use std::io::Write;

use super::state::LiveSweep;

/// A display of a running sweep.
pub(super) trait Face: Send {
    /// Draws the current state; called a few times per second.
    fn draw(&mut self, now: &LiveSweep);
    /// Prints whole lines about events.
    fn print(&mut self, text: &str);
    /// Removes all temporary output.
    fn close(&mut self);
}

/// Writes to stderr; a closed stderr must not end a sweep.
pub(super) fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
