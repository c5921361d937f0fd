//! Texts of estimated length.

use super::nonce::{self, Nonce};
use super::prose::{self, Dice, Ending};
use super::tokens::CHARS_PER_TOKEN;
use super::vocabulary::Topic;

/// Writes a text with about the given number of estimated tokens, including the nonce at its front, and
/// returns its estimated number of tokens.
pub(super) fn write(
    dice: &mut Dice,
    topic: &'static Topic,
    nonce: Option<Nonce>,
    (tokens, ending): (u32, Ending),
) -> (String, u32) {
    let (length, weight) = nonce::size(nonce);
    let budget = (tokens.saturating_mul(CHARS_PER_TOKEN)).saturating_sub(weight) as usize;
    // More text than needed, by up to one sentence, is written before it is truncated.
    let mut out = String::with_capacity(length + budget + 256);
    if let Some(nonce) = nonce {
        nonce.push(&mut out);
    }
    prose::write(&mut out, dice, topic, budget, ending);
    // Prose has one quarter of a token per character, see `tokens`.
    let weight = weight + (out.len() - length) as u32;
    (out, weight.div_ceil(CHARS_PER_TOKEN))
}
