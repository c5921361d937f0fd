//! A generation with its slot, and the state of the connection afterwards.

use super::fault::Kind;
use super::request::Request;
use super::served::{Finish, Serving};
use super::slot::Slot;
use super::tell::Took;
use super::timer::now;
use super::wire::Framing;

/// The state of the connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Keep,
    Close,
    /// It closes before the response is complete.
    Cut,
    Reset,
}

/// A generation with its slot.
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) request: Request,
    pub(super) fault: Option<Kind>,
    pub(super) tokens: u32,
    pub(super) finish: &'static str,
    /// Number of leading tokens that are reasoning.
    pub(super) reasoning: u32,
    /// The slot, which is released when it is dropped.
    pub(super) slot: Option<Slot>,
    pub(super) slot_at: u64,
    /// Its statistics; `None` once they are recorded.
    pub(super) serving: Option<Serving>,
    /// The time that the request took, once it has been served.
    pub(super) took: Option<Took>,
    /// The id of its trace, if it is reported.
    pub(super) trace: Option<String>,
    /// Leading tokens of the prompt found in the prefix cache.
    pub(super) cached: u64,
    /// When the response was created, in Unix seconds.
    pub(super) created: u64,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
}

impl Job {
    /// Returns the tokens of the prompt that must be computed.
    pub(super) fn computed(&self) -> u64 {
        self.request.prompt_tokens - self.cached
    }

    /// Returns the number of vectors or scores in the response: one too few if a fault shortens the
    /// response, and none if a fault makes it empty.
    pub(super) fn given(&self) -> usize {
        match self.fault {
            Some(Kind::Empty) => 0,
            Some(Kind::Short(_)) => self.request.values.saturating_sub(1),
            _ => self.request.values,
        }
    }

    /// Returns the number of tokens that the usage reports when `sent` have been written.
    pub(super) fn told(&self, sent: u32) -> u32 {
        match self.fault {
            Some(Kind::Usage(tokens)) => tokens,
            _ => sent,
        }
    }

    /// See [`Slot::prefilled`].
    pub(super) fn prefilled(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.prefilled(now());
        }
        if let Some(slot) = &mut self.slot {
            slot.prefilled();
        }
    }

    /// See [`Slot::say`].
    pub(super) fn say(&mut self, word: &'static str) {
        if let Some(serving) = &mut self.serving {
            serving.token(now());
        }
        if let Some(slot) = &mut self.slot {
            slot.say(word);
        }
    }

    /// Returns how long the request waited, before its generation is over.
    pub(super) fn queued(&self) -> Option<Took> {
        let queue = self.serving.as_ref()?.queued();
        Some(Took { queue, prefill: None, decode: None, total: None })
    }

    /// Records that the response is complete and its slot is free.
    pub(super) fn served(&mut self) {
        self.slot = None;
        let finish = if self.finish == "length" { Finish::Length } else { Finish::Stop };
        self.took = self.serving.take().map(|serving| serving.end(finish, now()));
    }
}
