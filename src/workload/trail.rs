//! Trails: the beginnings of prompts, in a form that can be compared. A trail contains the messages of a
//! prompt in order, split into chunks that are hashed one by one.
//!
//! Chunks grow with their distance from the front. The point where two prompts diverge is therefore known
//! to within a fixed fraction of their common part, and the trail of a long prompt takes a twelfth of the
//! prompt's size. Every message ends a chunk, so whole messages, and a nonce in front of them, are compared
//! to the byte. Two prompts with equal beginnings are split in the same places as far as they are equal.

use super::nonce;
use super::prompt::{Common, Prompt};
use super::tokens::Weigher;

/// Size of the first chunk, in bytes. Prompts that share less than this are treated as sharing nothing,
/// because all nonces begin with the same few characters, and servers do not cache such short blocks.
const FIRST: usize = 32;
/// Size of the shortest chunk after the first one, in bytes; about two tokens.
const SHORTEST: usize = 8;
/// Divisor for the size of a chunk: the size is the number of bytes in front of the chunk divided by this
/// value, but at least the minimum size.
const PART: usize = 128;

/// The role of a message. It is a separate chunk in front of the message, like the markers of a chat
/// template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The system message.
    System = 0x5b1d_0c31,
    /// The user's message.
    User = 0x2e6f_91a7,
    /// The response.
    Assistant = 0x71c3_88d5,
}

/// The part of a prompt that other prompts may share: its chunks, and for each chunk the number of tokens up
/// to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trail {
    chunks: Vec<u32>,
    tokens: Vec<u32>,
    /// Number of bytes of text in the trail.
    bytes: usize,
}

impl Trail {
    /// Creates an empty trail. Trails with different values of `salt` have nothing in common.
    pub(crate) fn new(salt: u32) -> Trail {
        Trail { chunks: vec![salt], tokens: vec![0], bytes: 0 }
    }

    /// Creates the trail of a prompt without history, limited to the part that other prompts may share.
    pub(crate) fn of(salt: u32, prompt: &Prompt) -> Trail {
        let mut trail = Trail::new(salt);
        let Prompt { system, user, system_tokens, intended_prompt_tokens, .. } = prompt;
        match (prompt.common, system) {
            (Common::Nothing, _) => {}
            (Common::Front(length), Some(system)) => trail.begin(Role::System, system, length, *system_tokens),
            (Common::Front(length), None) => trail.begin(Role::User, user, length, *intended_prompt_tokens),
            (Common::All | Common::Same, system) => {
                if let Some(system) = system {
                    trail.say(Role::System, system, *system_tokens);
                }
                trail.say(Role::User, user, intended_prompt_tokens.saturating_sub(*system_tokens));
            }
        }
        trail
    }

    /// Returns the chunks of the trail. The first one is the salt.
    pub(crate) fn chunks(&self) -> &[u32] {
        &self.chunks
    }

    /// Returns the number of tokens of the first `chunks` chunks.
    pub(crate) fn tokens(&self, chunks: usize) -> u32 {
        chunks.checked_sub(1).and_then(|last| self.tokens.get(last)).copied().unwrap_or(0)
    }

    /// Returns the size of the trail in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        8 * self.chunks.len()
    }

    /// Appends a message that has `tokens` tokens.
    pub(crate) fn say(&mut self, role: Role, text: &str, tokens: u32) {
        self.begin(role, text, text.len(), tokens);
    }

    /// Appends the first `length` bytes of a message whose whole text has `tokens` tokens. Within the
    /// message, the tokens are distributed in proportion to their estimated number; the count after its last
    /// chunk includes all of them.
    fn begin(&mut self, role: Role, text: &str, length: usize, tokens: u32) {
        let before = self.tokens.last().copied().unwrap_or(0);
        self.push(role as u32, before);
        let first = self.tokens.len();
        let (mut weigher, mut rest) = (Weigher::default(), text.as_bytes());
        let mut told = 0;
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(self.next_chunk(rest).min(rest.len()));
            weigher.take(chunk);
            told += chunk.len();
            if told <= length {
                self.bytes += chunk.len();
                self.push(hash(chunk), weigher.weight());
            }
            rest = behind;
        }
        let whole = u64::from(weigher.weight().max(1));
        for weight in &mut self.tokens[first..] {
            *weight = before.saturating_add((u64::from(*weight) * u64::from(tokens)).div_ceil(whole) as u32);
        }
    }

    fn push(&mut self, chunk: u32, tokens: u32) {
        self.chunks.push(chunk);
        self.tokens.push(tokens);
    }

    /// Returns the size of the next chunk, which is the beginning of `rest`.
    fn next_chunk(&self, rest: &[u8]) -> usize {
        match self.bytes {
            0 => nonce::length(rest).unwrap_or(FIRST),
            bytes => SHORTEST.max(bytes / PART),
        }
    }
}

/// Returns a 32-bit hash of a chunk. Chunks are compared only if all previous chunks are equal. Two
/// different chunks have the same hash once in four billion cases, and the error is then limited to one
/// chunk.
fn hash(chunk: &[u8]) -> u32 {
    const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(FACTORS[0]);
        (product as u64 ^ (product >> 64) as u64).wrapping_add(FACTORS[1])
    };
    let mut words = chunk.chunks_exact(8);
    let mut state = words.by_ref().fold(chunk.len() as u64 ^ FACTORS[1], |state, word| {
        mix(state, u64::from_le_bytes(std::array::from_fn(|at| word[at])))
    });
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    state = mix(state, u64::from_le_bytes(last));
    (state ^ (state >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::estimate;
    use proptest::prelude::*;

    fn trail_of(messages: &[(Role, &str)]) -> Trail {
        let mut trail = Trail::new(7);
        messages.iter().for_each(|(role, text)| trail.say(*role, text, estimate(text)));
        trail
    }

    /// Returns the number of leading tokens that two trails have in common.
    fn common(a: &Trail, b: &Trail) -> u32 {
        let chunks = a.chunks().iter().zip(b.chunks()).take_while(|(a, b)| a == b).count();
        assert!(a.tokens(chunks).abs_diff(b.tokens(chunks)) <= 1, "the part before both is counted equally");
        a.tokens(chunks)
    }

    #[test]
    fn whole_messages_are_found_to_the_byte() {
        let (system, user) = ("You are a clerk of few words. ".repeat(40), "What is it?");
        let a = trail_of(&[(Role::System, &system), (Role::User, user)]);
        let b = trail_of(&[(Role::System, &system), (Role::User, "Why is it?")]);
        assert_eq!(common(&a, &a), estimate(&system) + estimate(user));
        assert_eq!(common(&a, &b), estimate(&system));
        let answered =
            trail_of(&[(Role::System, &system), (Role::User, user), (Role::Assistant, "It is."), (Role::User, "So?")]);
        assert_eq!(common(&a, &answered), estimate(&system) + estimate(user), "a turn continues from the previous one");
        let said_by_another = trail_of(&[(Role::User, &system), (Role::User, user)]);
        assert_eq!(common(&a, &said_by_another), 0);
    }

    #[test]
    fn a_nonce_of_its_own_leaves_nothing_in_common() {
        let rest = "the same text after it, of any length".repeat(20);
        let [a, b] = ["[ref 482 773 194 205] ", "[ref 482 773 194 206] "].map(|nonce| format!("{nonce}{rest}"));
        assert_eq!(common(&trail_of(&[(Role::User, &a)]), &trail_of(&[(Role::User, &b)])), 0);
    }

    #[test]
    fn a_long_prompt_takes_a_twelfth_of_its_bytes() {
        let text = "several words, and several more. ".repeat(3_000);
        let trail = trail_of(&[(Role::User, &text)]);
        assert!(4 * trail.chunks().len() < text.len() / 12, "{} for {}", 4 * trail.chunks().len(), text.len());
    }

    /// Returns a text of `length` characters derived from `seed`, with letters, digits, spaces,
    /// line breaks and two-byte letters.
    fn text(mut seed: u64, length: usize) -> String {
        let letters: Vec<char> = "abcdefgh 0123456789é\n ".chars().collect();
        let next = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            letters[(seed >> 33) as usize % letters.len()]
        };
        (0..length).map(next).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn where_prompts_part_is_known_to_within_a_share_of_what_they_have_in_common(
            seed: u64, length in 0usize..8_000, [a, b] in [1usize..40, 1usize..40]
        ) {
            let front = text(seed, length);
            let [x, y] = [format!("{front}{}", "x".repeat(a)), format!("{front}{}", "y".repeat(b))];
            let found = common(&trail_of(&[(Role::User, &x)]), &trail_of(&[(Role::User, &y)]));
            let most = estimate(&front);
            prop_assert!(found <= most + 1, "{found} of {most}");
            // A digit weighs at most four times as much as a letter.
            let lost = (front.len() / PART).max(SHORTEST) as u32 + 2;
            let least = if front.len() < FIRST { 0 } else { most.saturating_sub(lost) };
            prop_assert!(found >= least, "{found} of {most}, {lost} may be lost");
        }
    }
}
