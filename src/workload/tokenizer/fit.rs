//! Creates a text that makes a prompt exactly as long as requested.
//!
//! The cost of each word is taken from a table, the text is truncated where the sum is right, and the whole
//! prompt is encoded to verify the length. If the length is wrong, the text is made longer or shorter by
//! the difference, and the prompt is encoded again. If this does not succeed, `patch` continues the search.
//! Texts are never created by decoding random token ids, because such texts do not encode to the same ids
//! again.

use super::draft::{Draft, Fitted, Parts, Whole};
use super::error::TokenizerError;
use super::learned::counted;
use super::{Tokenizer, patch};

/// Maximum number of times that a whole prompt is encoded before `patch` continues the search.
const MOST_TRIES: usize = 16;
impl Tokenizer {
    /// Returns the number of tokens that `whole` adds around a text: the number of tokens of the whole
    /// prompt minus that of the text.
    pub(in super::super) fn frame(&self, whole: Whole) -> Result<i64, TokenizerError> {
        const SAMPLE: &str = "The notes of that day say it in plain words. Why?";
        let tokens = whole(SAMPLE)?;
        Ok(i64::from(tokens) - self.words.costs(&self.source).text(SAMPLE))
    }

    /// Returns the number of tokens of `text` after another word, according to the table.
    pub(in super::super) fn cost(&self, text: &str) -> i64 {
        self.words.costs(&self.source).text(text)
    }

    /// Returns a text made from `parts` for which `whole` returns `target` tokens, or the closest
    /// text that was found. `frame` is the result of [`Tokenizer::frame`] for the same `whole`. The
    /// result depends only on the arguments.
    pub(in super::super) fn fit(
        &self,
        whole: Whole,
        frame: i64,
        target: u32,
        parts: Parts<'_, '_>,
    ) -> Result<Fitted, TokenizerError> {
        let mut draft = Draft::new(self.words.costs(&self.source), parts);
        // A tokenizer that was learned from a server is only a table, so the whole prompt cannot be
        // encoded.
        let is_learned = self.is_learned();
        let mut best: Option<Fitted> = None;
        // The number of tokens to aim for according to the table. It is corrected by the table's error each
        // time that the whole prompt has been encoded.
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
