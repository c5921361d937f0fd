//! Extracts the elements of a file that consists of one JSON array, without holding the whole array in
//! memory.
//!
//! Only brackets, commas, quotes and backslashes are examined. Whether an element is valid JSON is checked
//! when its bytes are parsed.

use super::text::{Cut, Cutter};

/// Splits the text of a JSON array into its elements.
#[derive(Default)]
pub(super) struct Elements {
    /// Number of open brackets, including the bracket of the array itself.
    depth: u64,
    within: Within,
    /// Whether the current element has begun. Everything up to the next comma then belongs to it.
    begun: bool,
    /// Whether the array's closing bracket has been found.
    closed: bool,
}

/// Whether the current position is outside of strings, in a string, or after a backslash in a string.
#[derive(Default, PartialEq)]
enum Within {
    #[default]
    Structure,
    Text,
    Escape,
}

impl Elements {
    /// Whether the end of the array was found before the end of the text.
    pub(super) fn is_whole(&self) -> bool {
        self.closed
    }

    fn part(&mut self) -> Cut {
        self.begun = true;
        Cut::Inside
    }
}

impl Cutter for Elements {
    fn see(&mut self, byte: u8) -> Cut {
        match (&self.within, byte) {
            (Within::Escape, _) => self.within = Within::Text,
            (Within::Text, b'\\') => self.within = Within::Escape,
            (Within::Text, b'"') => self.within = Within::Structure,
            (Within::Text, _) => {}
            (Within::Structure, b'"') => self.within = Within::Text,
            (Within::Structure, b'[' | b'{') => {
                self.depth += 1;
                if self.depth == 1 {
                    return Cut::Outside;
                }
            }
            (Within::Structure, b']' | b'}') => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.closed = true;
                    return Cut::End;
                }
            }
            (Within::Structure, b',') if self.depth == 1 => {
                self.begun = false;
                return Cut::Behind;
            }
            (Within::Structure, b' ' | b'\t' | b'\r' | b'\n') if !self.begun => return Cut::Outside,
            (Within::Structure, _) => {}
        }
        self.part()
    }

    fn run(&self, coming: &[u8]) -> usize {
        match self.within {
            Within::Text => memchr::memchr2(b'"', b'\\', coming).unwrap_or(coming.len()),
            Within::Structure | Within::Escape => 0,
        }
    }
}
