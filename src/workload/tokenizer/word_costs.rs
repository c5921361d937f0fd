//! The number of tokens of each word, measured once with the tokenizer. Nearly every tokenizer splits at
//! spaces, so the sum over the words of a text is nearly always the text's number of tokens. Computing this
//! sum is a thousand times cheaper than encoding the text. `fit` checks the whole prompt.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::learned::{AFTER, BEFORE};
use super::source::Source;

/// Maximum number of cached words. The English prose has a few thousand different words, and nonces contain
/// a thousand different numbers.
const MOST: usize = 1 << 16;

/// A cache of the costs of words.
#[derive(Default)]
pub(super) struct WordCosts(Mutex<HashMap<Box<str>, i64>>);

/// Looks up the costs of words, and measures those of words that are not known yet.
pub(super) struct Costs<'a> {
    source: &'a Source,
    known: MutexGuard<'a, HashMap<Box<str>, i64>>,
    /// Buffer for a word and the texts around it.
    text: String,
}

impl WordCosts {
    pub(crate) fn costs<'a>(&'a self, source: &'a Source) -> Costs<'a> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Costs { source, known, text: String::new() }
    }
}

impl Costs<'_> {
    /// Returns the number of tokens of `text` after another word; the words in it are separated by
    /// single spaces.
    pub(crate) fn text(&mut self, text: &str) -> i64 {
        if text.is_empty() { 0 } else { text.split(' ').map(|word| self.word(word)).sum() }
    }

    /// Returns the number of tokens of `word` (which contains no space) together with the space before it.
    pub(crate) fn word(&mut self, word: &str) -> i64 {
        if let Source::Learned(learned) = self.source {
            return learned.word(word);
        }
        if let Some(cost) = self.known.get(word) {
            return *cost;
        }
        let cost = self.tokens(&[BEFORE, " ", word, AFTER]) - self.tokens(&[BEFORE, AFTER]);
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(word.into(), cost);
        cost
    }

    /// Returns the total number of tokens of some pieces; 0 if the tokenizer fails, which is detected
    /// when the whole prompt is encoded.
    fn tokens(&mut self, pieces: &[&str]) -> i64 {
        self.text.clear();
        self.text.extend(pieces.iter().copied());
        let Source::Files { encoder, .. } = self.source else { return 0 };
        encoder.encode_fast(self.text.as_str(), false).map_or(0, |encoding| encoding.len() as i64)
    }
}
