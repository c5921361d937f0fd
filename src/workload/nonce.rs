//! Nonces: a few tokens at the beginning of a prompt that no other run has used.

use sha2::{Digest, Sha256};

use crate::plan::NonceMode;
use crate::units::NonceSeed;

/// Number of three-digit groups in a nonce. Four groups allow a trillion different nonces.
const GROUPS: usize = 4;

/// Number of characters of a nonce as it appears in a prompt, for example `[ref 482 773 194 205] `.
const LENGTH: usize = "[ref".len() + GROUPS * " 482".len() + "] ".len();

/// Estimated length of a nonce, in quarters of a token (see [`super::tokens`]). Each group counts as two
/// tokens; the rest is counted like prose.
const WEIGHT: u32 = 6 + GROUPS as u32 * 2 * super::tokens::CHARS_PER_TOKEN;

/// Estimated number of tokens of a nonce. It is the same for every nonce, and is included in the prompt's
/// length.
///
/// Tokenizers that split numbers into groups of three digits or into single digits also need the same
/// number of tokens for every nonce, although that number differs from the estimate (12 in cl100k_base and
/// o200k_base). With tokenizers from GPT-2's time, which merge frequent numbers, the number of tokens
/// differs between nonces.
#[cfg(test)]
pub(crate) const NONCE_TOKENS: u32 = WEIGHT.div_ceil(super::tokens::CHARS_PER_TOKEN);

/// The key from which the nonces of an attempt are derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NonceKey {
    key: [u8; 32],
    /// Whether all prompts begin with the same nonce, whatever text they share.
    is_one_for_all: bool,
}

impl NonceKey {
    /// Returns the key of the attempt with these random bits.
    pub fn new(NonceSeed(bits): NonceSeed) -> NonceKey {
        let key = Sha256::new().chain_update(b"sweepline nonce key 2\0").chain_update(bits).finalize();
        NonceKey { key: key.into(), is_one_for_all: false }
    }

    /// Returns the nonce key that `mode` requires for one class of a mix or, if the run is not a mix, for all
    /// of its requests; `None` if these requests have no nonce.
    ///
    /// Classes may use the same request numbers. Their nonces still differ, unless one nonce is common to all
    /// requests of the run.
    pub fn under(self, mode: NonceMode, class: Option<u32>) -> Option<NonceKey> {
        match (mode, class) {
            (NonceMode::Off, _) => None,
            (NonceMode::Run, _) => Some(NonceKey { is_one_for_all: true, ..self }),
            (NonceMode::On, None) => Some(self),
            (NonceMode::On, Some(class)) => Some(self.of_class(class)),
        }
    }

    fn of_class(self, class: u32) -> NonceKey {
        let mut hash = Sha256::new();
        hash.update(b"sweepline nonce class 1\0");
        hash.update(self.key);
        hash.update(class.to_le_bytes());
        NonceKey { key: hash.finalize().into(), ..self }
    }

    /// Whether all prompts begin with the same nonce, whatever text they share.
    pub(super) fn is_one_for_all(self) -> bool {
        self.is_one_for_all
    }
}

/// The requests that use the same nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All requests of the attempt.
    Attempt,
    /// The request or conversation with this number.
    Item(u64),
    /// One turn of one conversation, or one request.
    Request(u64, u32),
    /// The prompts that share the text of the group with this number.
    Group(u32),
}

/// A nonce, as it appears at the front of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nonce {
    /// The digit groups, each below 1 000.
    groups: [u16; GROUPS],
}

impl Nonce {
    pub(super) fn new(NonceKey { key, is_one_for_all }: NonceKey, scope: Scope) -> Nonce {
        let mut hash = Sha256::new();
        hash.update(b"sweepline nonce 1\0");
        hash.update(key);
        match if is_one_for_all { Scope::Attempt } else { scope } {
            Scope::Attempt => hash.update([0]),
            Scope::Item(number) => {
                hash.update([1]);
                hash.update(number.to_le_bytes());
            }
            Scope::Group(group) => {
                hash.update([3]);
                hash.update(group.to_le_bytes());
            }
            Scope::Request(number, turn) => {
                hash.update([2]);
                hash.update(number.to_le_bytes());
                hash.update(turn.to_le_bytes());
            }
        }
        let digest = hash.finalize();
        let group = |at: usize| {
            let bytes: [u8; 4] = std::array::from_fn(|byte| digest[at * 4 + byte]);
            (u32::from_le_bytes(bytes) % 1_000) as u16
        };
        Nonce { groups: std::array::from_fn(group) }
    }

    pub(super) fn push(self, out: &mut String) {
        self.push_groups(GROUPS, out);
        out.push(' ');
    }

    /// Returns the nonce and its shorter forms, for texts without room for the whole nonce. The longest
    /// form comes first and a single digit last. None has a trailing space.
    pub(super) fn shorter_and_shorter(self) -> Vec<String> {
        let text = |groups| {
            let mut text = String::with_capacity(LENGTH);
            self.push_groups(groups, &mut text);
            text
        };
        let digits = format!("{:03}", self.groups[0]);
        let fewer = (1..=digits.len()).rev().map(|length| digits[..length].to_owned());
        (1..=GROUPS).rev().map(text).chain(fewer).collect()
    }

    fn push_groups(self, groups: usize, out: &mut String) {
        out.push_str("[ref");
        for group in &self.groups[..groups] {
            out.push(' ');
            for digit in [group / 100, group / 10 % 10, group % 10] {
                out.push(char::from(b'0' + digit as u8));
            }
        }
        out.push(']');
    }
}

/// Returns how much `nonce` adds to the front of a text: its size in bytes, and its estimated length in
/// quarters of a token.
pub(super) fn size(nonce: Option<Nonce>) -> (usize, u32) {
    if nonce.is_some() { (LENGTH, WEIGHT) } else { (0, 0) }
}

/// Returns the size of the nonce with which `text` begins, including the space after it, in bytes; `None`
/// if `text` does not begin with a nonce.
pub(super) fn length(text: &[u8]) -> Option<usize> {
    (text.starts_with(b"[ref ") && text.get(LENGTH - 2..LENGTH) == Some(b"] ")).then_some(LENGTH)
}
