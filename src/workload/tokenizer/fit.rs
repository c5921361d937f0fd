//! A text that makes a prompt exactly as long as requested.
//!
//! The cost of each word is taken from a table, the text is truncated where the sum is right, and the whole
//! prompt is encoded to verify the length. If the length is wrong, the end moves by the difference and the
//! prompt is encoded again. If that fails too, `patch` continues the search. Token ids are never made up
//! and decoded, because such texts do not encode to the same ids again.

use super::draft::{Draft, Fitted, Parts, Whole};
use super::error::TokenizerError;
use super::learned::counted;
use super::{Tokenizer, patch};

/// How often a whole prompt is encoded before the closest length is accepted.
const MOST_TRIES: usize = 16;
impl Tokenizer {
    /// Returns the number of tokens around a text, which is that of the whole prompt minus that of the
    /// text in it.
    pub(in super::super) fn frame(&self, whole: Whole) -> Result<i64, TokenizerError> {
        const SAMPLE: &str = "The notes of that day say it in plain words. Why?";
        let tokens = whole(SAMPLE)?;
        Ok(i64::from(tokens) - self.words.costs(&self.source).text(SAMPLE))
    }

    /// Returns the number of tokens of `text` after another word, according to the table.
    pub(in super::super) fn cost(&self, text: &str) -> i64 {
        self.words.costs(&self.source).text(text)
    }

    /// Returns a text of `parts` with which `whole` has `target` tokens, or the closest one that
    /// was found. `frame` is the result of [`Tokenizer::frame`] for the same surroundings. A pure
    /// function of its arguments.
    pub(in super::super) fn fit(
        &self,
        whole: Whole,
        frame: i64,
        target: u32,
        parts: Parts<'_, '_>,
    ) -> Result<Fitted, TokenizerError> {
        let mut draft = Draft::new(self.words.costs(&self.source), parts);
        // A tokenizer learned from a server is only a table, so the whole prompt cannot be encoded.
        let is_learned = self.is_learned();
        let mut best: Option<Fitted> = None;
        // The error of the table, as shown by the encodings of the whole prompt.
        let mut budget = i64::from(target) - frame;
        let mut tried: Vec<i64> = Vec::new();
        for _ in 0..MOST_TRIES {
            let again = tried.iter().filter(|before| **before == budget).count();
            tried.push(budget);
            let text = draft.text(budget, again);
            let tokens = if is_learned { counted(draft.cost(&text) + frame) } else { whole(&text)? };
            let off = i64::from(target) - i64::from(tokens);
            if best.as_ref().is_none_or(|best| off.unsigned_abs() < u64::from(best.tokens.abs_diff(target))) {
                best = Some(Fitted { text, tokens });
            }
            if off == 0 {
                break;
            }
            budget += off;
        }
        let best = best.expect("at least one text was tried");
        if best.tokens == target || is_learned {
            Ok(best)
        } else {
            patch::search(&mut draft, whole, (frame, target), best)
        }
    }
}
