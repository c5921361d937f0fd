//! Prompts of a trace: as long as it says, and sharing what it says.
//!
//! A prompt is its blocks one after the other, each the text of its name, and a text of its own for what no block names.
//! Equal names are equal text, byte for byte; the last block of a prompt is cut where the prompt ends. The nonce stands in
//! front of the first block: it is the same for all requests of the attempt where they have blocks, so that they share
//! them, and their own where they have none, unless one is for all.

use std::sync::Arc;

use crate::dataset::BLOCK_TOKENS;
use crate::plan::{Replay, TraceRequest};

use super::nonce::{self, Nonce, NonceKey, Scope};
use super::prose::{self, Dice, Ending};
use super::tokens::CHARS_PER_TOKEN;

/// The requests of a trace as prompts.
#[derive(Debug, Clone)]
pub(super) struct Replayed {
    requests: Arc<[TraceRequest]>,
    block_key: [u8; 32],
    own_key: [u8; 32],
}

impl Replayed {
    pub(super) fn new(replay: &Replay, [block_key, own_key]: [[u8; 32]; 2]) -> Replayed {
        Replayed { requests: Arc::clone(&replay.requests.0), block_key, own_key }
    }

    /// Request `k` from 0. More are asked for than the trace has where it is repeated, and where contents are made ahead.
    pub(super) fn request(&self, k: u64) -> &TraceRequest {
        &self.requests[self.at(k)]
    }

    fn at(&self, k: u64) -> usize {
        (k % self.requests.len() as u64) as usize
    }

    /// How far the nonce of request `k` reaches.
    pub(super) fn scope(&self, k: u64) -> Scope {
        if self.request(k).blocks.is_empty() { Scope::Item(k) } else { Scope::Attempt }
    }

    /// What the words of a block are drawn from.
    pub(super) fn block(&self, block: u64) -> Dice {
        Dice::new(&self.block_key, block, 0)
    }

    /// What the words of request `k` are drawn from that no block names.
    pub(super) fn own(&self, k: u64) -> Dice {
        Dice::new(&self.own_key, k, 0)
    }

    /// The text of request `k` and its tokens, by the estimate.
    pub(super) fn prompt(&self, k: u64, nonce: Option<NonceKey>) -> (String, u32) {
        let request = self.request(k);
        let nonce = nonce.map(|key| Nonce::new(key, self.scope(k)));
        let (length, weight) = nonce::size(nonce);
        let wanted = request.prompt_tokens.saturating_mul(CHARS_PER_TOKEN);
        let mut out = String::with_capacity(wanted as usize + length + 2 * OVER);
        if let Some(nonce) = nonce {
            nonce.push(&mut out);
        }
        let mut written = weight;
        for (at, block) in (1u32..).zip(&request.blocks) {
            let end = at.saturating_mul(BLOCK_TOKENS * CHARS_PER_TOKEN).min(wanted);
            let length = end.saturating_sub(written);
            append(&mut out, self.block(*block), (length, BLOCK_TOKENS * CHARS_PER_TOKEN));
            written = written.max(end);
        }
        let left = wanted.saturating_sub(written);
        append(&mut out, self.own(k), (left, left));
        (out, written.max(wanted).div_ceil(CHARS_PER_TOKEN))
    }
}

/// Characters that are written over what is wanted, so that the cut is exact: prose ends within a few of its budget.
const OVER: usize = 64;

/// Appends exactly the first `length` characters of a prose of `whole`, the last of them a line's end.
fn append(out: &mut String, mut dice: Dice, (length, whole): (u32, u32)) {
    if length == 0 {
        return;
    }
    let end = out.len() + length as usize;
    let topic = dice.topic();
    prose::write(out, &mut dice, topic, whole as usize + OVER, Ending::Question);
    // Prose is ASCII: a character is a byte, wherever it is cut.
    out.truncate(end - 1);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::TraceRequests;
    use crate::units::{Decimal, Nanos, NonceSeed};
    use crate::workload::estimate;

    fn replayed(requests: &[(u32, &[u64])]) -> Replayed {
        let request = |(prompt_tokens, blocks): &(u32, &[u64])| TraceRequest {
            at: Nanos::ZERO,
            prompt_tokens: *prompt_tokens,
            output_tokens: 1,
            blocks: (*blocks).into(),
        };
        let requests = TraceRequests(requests.iter().map(request).collect());
        let (sha256, reading) = (String::new(), String::new());
        let replay = Replay { sha256, reading, speed: Decimal::new(1, 0), window: None, repeat: false, requests };
        Replayed::new(&replay, [[1; 32], [2; 32]])
    }

    fn common(a: &str, b: &str) -> usize {
        a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
    }

    #[test]
    fn prompts_have_their_length_and_share_their_blocks() {
        let trace =
            replayed(&[(1300, &[7, 8, 9]), (1300, &[7, 8, 10]), (600, &[7, 8]), (900, &[]), (900, &[]), (3, &[11])]);
        for key in [None, Some(NonceKey::new(NonceSeed([3; 16])))] {
            let (texts, tokens): (Vec<_>, Vec<_>) = (0..6).map(|k| trace.prompt(k, key)).unzip();
            let nonce = if key.is_some() { super::super::NONCE_TOKENS } else { 0 };
            assert_eq!(tokens, [1300, 1300, 600, 900, 900, nonce.max(3)]);
            for (text, tokens) in texts.iter().zip(&tokens) {
                assert!(estimate(text).abs_diff(*tokens) <= 1, "{} for {tokens}", estimate(text));
            }
            // Two whole blocks, and not much more; with the nonce the characters of its digits are fewer than they weigh.
            let shared = common(&texts[0], &texts[1]) as u32 / CHARS_PER_TOKEN;
            assert!(shared.abs_diff(1024) <= 12, "{shared}");
            let shared = common(&texts[0], &texts[2]) as u32 / CHARS_PER_TOKEN;
            assert!(shared.abs_diff(600) <= 12, "{shared}");
            assert!(common(&texts[3], &texts[4]) < 100, "what no block names is a text of its own");
        }
        assert_eq!(trace.request(6).prompt_tokens, 1300, "what is made ahead of the end is thrown away");
    }
}
