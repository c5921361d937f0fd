//! One digest over everything that determines the texts of a run, and the keys derived from it.

use sha2::{Digest, Sha256};

use crate::plan::model::content::{Content, Reuse};
use crate::plan::{Corpus, Prefix, Replay};
use crate::units::Seed;

/// Returns the SHA-256 over everything that determines the texts of a run. It is equal for cold and warm
/// variants, which differ only in their nonces.
pub(super) fn digest(content: &Content, Seed(seed): Seed, repeat: u32) -> [u8; 32] {
    let Content {
        reuse,
        system_tokens,
        prompt_tokens,
        output_tokens,
        turns,
        talk: _,
        lengths,
        trace,
        data,
        prefix,
        sharing,
        turn_counts,
        cache: _,
    } = content;
    let reuse: u8 = match reuse {
        Reuse::SamePrompt => 0,
        Reuse::None => 1,
        Reuse::SharedSystem => 2,
        Reuse::Conversation => 3,
    };
    let mut hash = Sha256::new();
    hash.update(b"sweepline text 1\0");
    hash.update(seed.to_le_bytes());
    hash.update(repeat.to_le_bytes());
    hash.update([reuse]);
    for number in [system_tokens, prompt_tokens, output_tokens, turns] {
        hash.update(number.to_le_bytes());
    }
    if let Some(lengths) = lengths {
        hash.update(format!("lengths {lengths}\0"));
    }
    if let Some(Replay { sha256, reading, speed: _, window, repeat: _, requests: _ }) = trace {
        hash.update(format!("trace {sha256} {reading} {window:?}\0"));
    }
    if let Some(Corpus { order, output_tokens, source }) = data {
        hash.update(format!("data {} {} {output_tokens:?}\0", source.texts, order.name()));
    }
    if let Some(Prefix { share, tokens, groups, order }) = prefix {
        hash.update(format!("prefix {share} {tokens} {groups} {}\0", order.name()));
    }
    if let Some(sharing) = sharing {
        hash.update(format!("sharing {}\0", sharing.digest()));
    }
    if let Some(counts) = turn_counts {
        hash.update(format!("turns {}\0", counts.digest()));
    }
    hash.finalize().into()
}

/// Derives a separate key for each `role`, that is, each kind of texts and draws.
pub(super) fn derived(digest: &[u8; 32], role: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(digest).chain_update(role).finalize().into()
}
