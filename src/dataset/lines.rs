//! Files with one entry per line.

use super::text::{Cut, Cutter};

/// Splits a text at line ends; blank lines do not count as entries.
#[derive(Default)]
pub(super) struct Lines {
    /// The line contains a byte other than white space.
    begun: bool,
}

impl Cutter for Lines {
    fn see(&mut self, byte: u8) -> Cut {
        match byte {
            b'\n' => {
                self.begun = false;
                Cut::Behind
            }
            b' ' | b'\t' | b'\r' if !self.begun => Cut::Outside,
            _ => {
                self.begun = true;
                Cut::Inside
            }
        }
    }

    fn run(&self, coming: &[u8]) -> usize {
        if self.begun { memchr::memchr(b'\n', coming).unwrap_or(coming.len()) } else { 0 }
    }
}
