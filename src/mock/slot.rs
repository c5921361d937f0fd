//! The resources of a request while it is served: its slot, and the tokens that are computed for it.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::OwnedSemaphorePermit;

use super::cache::Cache;
use super::chain::{Chain, Kind};
use super::tokens::{plain, tokens};

/// A place among the concurrent streams. When it is dropped, the computed tokens are kept in the prefix
/// cache before the place is released, so that the next request finds them.
pub(super) struct Slot {
    sequence: Option<Sequence>,
    _permit: Option<OwnedSemaphorePermit>,
    cached: u64,
}

/// The tokens of a request's prompt and response, for the prefix cache.
struct Sequence {
    cache: Rc<RefCell<Cache>>,
    chain: Chain,
    /// Whether the prompt has been computed completely; before that, there is nothing to keep.
    prefilled: bool,
    /// The response's newest word, which is not part of `chain` yet; `None` before the first word. As in a
    /// real engine, a token becomes part of the sequence when the next token is computed from it, so the last
    /// token of a response is never cached.
    newest: Option<&'static str>,
}

impl Slot {
    /// Creates the slot for `permit`, and looks up the prompt in the prefix cache. vLLM also looks up the
    /// prompt when it schedules a request.
    pub(super) fn new(
        permit: Option<OwnedSemaphorePermit>,
        cache: Option<&Rc<RefCell<Cache>>>,
        prompt: Option<Chain>,
    ) -> Slot {
        let sequence = cache.zip(prompt).map(|(cache, chain)| {
            let cached = cache.borrow_mut().look_up(&chain);
            (cached, Sequence { cache: Rc::clone(cache), chain, prefilled: false, newest: None })
        });
        let (cached, sequence) = sequence.unzip();
        Slot { sequence, _permit: permit, cached: cached.unwrap_or(0) }
    }

    /// Returns the number of leading tokens of the prompt that were found in the prefix cache.
    pub(super) fn cached(&self) -> u64 {
        self.cached
    }

    /// Records that the prompt was computed. From now on, other requests can use its blocks. (vLLM treats
    /// blocks as present when it schedules the step that computes them, so two equal prompts in one step
    /// share them. Here, both are computed.)
    pub(super) fn prefilled(&mut self) {
        if let Some(sequence) = &mut self.sequence {
            sequence.prefilled = true;
            sequence.cache.borrow_mut().keep(&sequence.chain);
        }
    }

    /// Records the next word of the response, which is escaped as in JSON strings.
    pub(super) fn say(&mut self, word: &'static str) {
        let Some(Sequence { chain, newest, .. }) = &mut self.sequence else { return };
        if let Some(word) = newest.replace(word) {
            tokens(&plain(word)).for_each(|token| chain.push(Kind::Word, token));
        }
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        if self.prefilled {
            self.cache.borrow_mut().keep(&self.chain);
        }
    }
}
