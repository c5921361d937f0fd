//! Extracts the elements of a file that is one JSON array, without reading the whole array.
//!
//! Only brackets, quotes and backslashes are examined; the parser of the element's bytes decides
//! whether the element is valid JSON.

use super::text::{Cut, Cutter};

/// Extracts the elements of an array.
#[derive(Default)]
pub(super) struct Elements {
    /// Number of open brackets, including that of the array.
    depth: u64,
    within: Within,
    /// The element is a number or a word, or has ended at its bracket. Everything up to the next
    /// comma belongs to it.
    begun: bool,
    /// The array's closing bracket has been found.
    closed: bool,
}

/// The position within a string.
#[derive(Default, PartialEq)]
enum Within {
    #[default]
    Structure,
    Text,
    Escape,
}

impl Elements {
    /// Whether the array ended properly before the end of the text.
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
