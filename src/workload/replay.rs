//! Creates the prompts of a trace, with the lengths and shared parts that the trace specifies.
//!
//! A prompt consists of its blocks, followed by a unique text for the part without blocks. Blocks with the
//! same name have the same text, byte for byte; the last block of a prompt is truncated where the prompt
//! ends. The nonce precedes the first block. All requests of the attempt that have blocks have the same
//! nonce, so that they can share blocks. Each request without blocks has its own nonce, unless one nonce is
//! common to all requests.

use std::sync::Arc;

use crate::dataset::BLOCK_TOKENS;
use crate::plan::{Replay, TraceRequest};

use super::nonce::{self, Nonce, NonceKey, Scope};
use super::prose::{self, Dice, Ending};
use super::tokens::CHARS_PER_TOKEN;

/// Creates the prompts for the requests of a trace.
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

    /// Returns request `k`, counted from 0. `k` may exceed the length of the trace if the trace is
    /// repeated, or if contents are prepared ahead.
    pub(super) fn request(&self, k: u64) -> &TraceRequest {
        &self.requests[self.at(k)]
    }

    fn at(&self, k: u64) -> usize {
        (k % self.requests.len() as u64) as usize
    }

    /// Returns the scope of the nonce of request `k`.
    pub(super) fn scope(&self, k: u64) -> Scope {
        if self.request(k).blocks.is_empty() { Scope::Item(k) } else { Scope::Attempt }
    }

    /// Returns the source of random choices for the text of a block.
    pub(super) fn block(&self, block: u64) -> Dice {
        Dice::new(&self.block_key, block, 0)
    }

    /// Returns the source of random choices for the text of request `k` outside of blocks.
    pub(super) fn own(&self, k: u64) -> Dice {
        Dice::new(&self.own_key, k, 0)
    }

    /// Returns the text of request `k` and its estimated number of tokens.
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

/// Number of characters that are written beyond the requested length. Prose may be a few characters shorter
/// than requested, and is then truncated to the exact length.
const OVER: usize = 64;

/// Writes prose of about `whole` characters, and appends its first `length` characters, the last of which is
/// replaced by a line break.
fn append(out: &mut String, mut dice: Dice, (length, whole): (u32, u32)) {
    if length == 0 {
        return;
    }
    let end = out.len() + length as usize;
    let topic = dice.topic();
    prose::write(out, &mut dice, topic, whole as usize + OVER, Ending::Question);
    // Prose is ASCII, so every character is one byte and it can be truncated anywhere.
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
            // The texts share two whole blocks and little more. The tolerance is for the nonce, which has
            // fewer characters than the estimate of its tokens assumes.
            let shared = common(&texts[0], &texts[1]) as u32 / CHARS_PER_TOKEN;
            assert!(shared.abs_diff(1024) <= 12, "{shared}");
            let shared = common(&texts[0], &texts[2]) as u32 / CHARS_PER_TOKEN;
            assert!(shared.abs_diff(600) <= 12, "{shared}");
            assert!(common(&texts[3], &texts[4]) < 100, "the part without a block is a unique text");
        }
        assert_eq!(trace.request(6).prompt_tokens, 1300, "contents prepared beyond the end are discarded");
    }
}
