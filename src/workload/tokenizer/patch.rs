//! The last step to an exact length, for prompts whose length is still wrong after they were fitted with the
//! table of word costs. A few words are removed, then short pieces are appended one after another, and the
//! whole prompt is encoded after each piece.

use super::draft::{Draft, Fitted, Whole, joined};
use super::error::TokenizerError;

/// Maximum number of times that the whole prompt is encoded in one search. A few times are enough, except for
/// tokenizers with hardly any words in their vocabulary.
const MOST_TRIES: usize = 600;
/// Numbers of tokens that are removed from the prose, and replaced by pieces, in successive attempts.
const SPARES: [i64; 4] = [0, 3, 6, 12];
/// The pieces that are appended to the prose. Pieces without a space are for tokenizers in which every
/// space is a token.
const PIECES: &[&str] = &[
    " and", " so", " then", " but", " now", " the", " or", " for", " also", " yet", " a", " I", " -", "...", "..", ".",
    "!", "?",
];
/// If at most this many tokens are missing, the smallest piece is appended; otherwise the first piece that
/// fits.
const NEAR: u32 = 4;

/// A search in progress.
struct Search<'a> {
    whole: Whole<'a>,
    target: u32,
    best: Fitted,
    left: usize,
}

/// Returns a text from `draft` that makes the whole prompt `target` tokens long. If none is found, returns
/// the closest text, which may be `best`.
pub(super) fn search(
    draft: &mut Draft<'_, '_, '_>,
    whole: Whole,
    (frame, target): (i64, u32),
    best: Fitted,
) -> Result<Fitted, TokenizerError> {
    let mut search = Search { whole, target, best, left: MOST_TRIES };
    for (head, ending) in draft.outers() {
        for spare in SPARES {
            let room = i64::from(target) - frame - draft.cost(head) - draft.cost(ending) - spare;
            let body = draft.prose_below(room);
            let is_empty = body.is_empty();
            if search.grow(head, body, ending)? || search.left == 0 {
                return Ok(search.best);
            }
            if is_empty {
                break;
            }
        }
    }
    Ok(search.best)
}

impl Search<'_> {
    /// Appends pieces to `body` until the whole prompt has the requested length. Returns false if that is
    /// not possible.
    fn grow(&mut self, head: &str, mut body: String, ending: &str) -> Result<bool, TokenizerError> {
        let Some(mut tokens) = self.tokens([head, &body, ending])? else { return Ok(false) };
        while tokens < self.target {
            let mut next: Option<(String, u32)> = None;
            for piece in PIECES {
                let longer = if body.is_empty() { piece.trim_start().to_owned() } else { format!("{body}{piece}") };
                let Some(with) = self.tokens([head, &longer, ending])? else { return Ok(false) };
                if with == self.target {
                    return Ok(true);
                }
                if with > tokens && with < self.target && next.as_ref().is_none_or(|(_, best)| with < *best) {
                    next = Some((longer, with));
                }
                if next.is_some() && self.target - tokens > NEAR {
                    break;
                }
            }
            let Some((longer, with)) = next else { return Ok(false) };
            (body, tokens) = (longer, with);
        }
        Ok(tokens == self.target)
    }

    /// Returns the number of tokens of the whole prompt with a text of these parts; `None` after too many
    /// attempts. Also remembers the closest text so far.
    fn tokens(&mut self, parts: [&str; 3]) -> Result<Option<u32>, TokenizerError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let text = joined(parts);
        let tokens = (self.whole)(&text)?;
        if tokens.abs_diff(self.target) < self.best.tokens.abs_diff(self.target) {
            self.best = Fitted { text, tokens };
        }
        Ok(Some(tokens))
    }
}
