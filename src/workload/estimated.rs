//! Texts whose lengths are estimates.

use super::nonce::{self, Nonce};
use super::prose::{self, Dice, Ending};
use super::tokens::CHARS_PER_TOKEN;
use super::vocabulary::Topic;

/// A text of the wanted number of tokens by the estimate with its nonce in front, and the tokens it really has by it.
pub(super) fn write(
    dice: &mut Dice,
    topic: &'static Topic,
    nonce: Option<Nonce>,
    (tokens, ending): (u32, Ending),
) -> (String, u32) {
    let (length, weight) = nonce::size(nonce);
    let budget = (tokens.saturating_mul(CHARS_PER_TOKEN)).saturating_sub(weight) as usize;
    // One sentence more than wanted is written before the cut.
    let mut out = String::with_capacity(length + budget + 256);
    if let Some(nonce) = nonce {
        nonce.push(&mut out);
    }
    prose::write(&mut out, dice, topic, budget, ending);
    // Prose has one quarter of a token for each character, see `tokens`.
    let weight = weight + (out.len() - length) as u32;
    (out, weight.div_ceil(CHARS_PER_TOKEN))
}
