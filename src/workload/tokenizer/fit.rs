//! A text that makes a prompt exactly as long as asked.
//!
//! The words of a text are counted from a table, cut where the sum is right, and the whole prompt is encoded to see
//! whether it holds; where it does not, the cut moves by the difference and the whole is encoded again; where that leads
//! nowhere, `patch` looks on. Ids are never made up and decoded: such texts do not encode to the same ids again.

use super::draft::{Draft, Fitted, Parts, Whole};
use super::error::TokenizerError;
use super::learned::counted;
use super::{Tokenizer, patch};

/// How often a whole prompt is encoded before the nearest one is taken.
const MOST_TRIES: usize = 16;
impl Tokenizer {
    /// Tokens of all that stands around a text: of a whole prompt, less those of the text in it.
    pub(in super::super) fn frame(&self, whole: Whole) -> Result<i64, TokenizerError> {
        const SAMPLE: &str = "The notes of that day say it in plain words. Why?";
        let tokens = whole(SAMPLE)?;
        Ok(i64::from(tokens) - self.words.costs(&self.source).text(SAMPLE))
    }

    /// Tokens of `text` by the table, as it stands behind another word.
    pub(in super::super) fn cost(&self, text: &str) -> i64 {
        self.words.costs(&self.source).text(text)
    }

    /// A text of `parts` with which `whole` has `target` tokens; the nearest that was found where none has. `frame` is
    /// what [`Tokenizer::frame`] gave for the same surroundings. A pure function of its arguments.
    pub(in super::super) fn fit(
        &self,
        whole: Whole,
        frame: i64,
        target: u32,
        parts: Parts<'_, '_>,
    ) -> Result<Fitted, TokenizerError> {
        let mut draft = Draft::new(self.words.costs(&self.source), parts);
        // What was learned from a server is a table and no more: nobody can encode the whole.
        let is_learned = self.is_learned();
        let mut best: Option<Fitted> = None;
        // What the table missed, as the encodings of the whole showed.
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
