//! A generation in progress, and what happens to the connection afterwards.

use super::fault::Kind;
use super::request::Request;
use super::served::{Finish, Serving};
use super::slot::Slot;
use super::tell::Took;
use super::timer::now;
use super::wire::Framing;

/// What happens to the connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Keep,
    Close,
    /// The connection is closed before the response is complete.
    Cut,
    Reset,
}

/// A generation in progress: the request, its slot, and how the response is made.
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) request: Request,
    pub(super) fault: Option<Kind>,
    pub(super) tokens: u32,
    pub(super) finish: &'static str,
    /// Number of leading tokens that are reasoning.
    pub(super) reasoning: u32,
    /// The slot of the request; `None` once it has been released.
    pub(super) slot: Option<Slot>,
    pub(super) slot_at: u64,
    /// The statistics of the generation; `None` once they are recorded.
    pub(super) serving: Option<Serving>,
    /// How long the parts of the request took; `None` until it has been served.
    pub(super) took: Option<Took>,
    /// The trace id of the response; `None` if it is not reported.
    pub(super) trace: Option<String>,
    /// Number of leading tokens of the prompt that were found in the prefix cache.
    pub(super) cached: u64,
    /// When the response was created, in Unix seconds.
    pub(super) created: u64,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
}

impl Job {
    /// Returns the number of tokens of the prompt that must be computed.
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

    /// Returns the number of completion tokens that the usage reports when `sent` tokens have been written.
    pub(super) fn told(&self, sent: u32) -> u32 {
        match self.fault {
            Some(Kind::Usage(tokens)) => tokens,
            _ => sent,
        }
    }

    /// Records that the prompt has been computed (see [`Slot::prefilled`]).
    pub(super) fn prefilled(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.prefilled(now());
        }
        if let Some(slot) = &mut self.slot {
            slot.prefilled();
        }
    }

    /// Records the next word of the response (see [`Slot::say`]).
    pub(super) fn say(&mut self, word: &'static str) {
        if let Some(serving) = &mut self.serving {
            serving.token(now());
        }
        if let Some(slot) = &mut self.slot {
            slot.say(word);
        }
    }

    /// Returns how long the request waited for its slot. The other times are unknown until the generation
    /// is over. `None` if the statistics are already recorded.
    pub(super) fn queued(&self) -> Option<Took> {
        let queue = self.serving.as_ref()?.queued();
        Some(Took { queue, prefill: None, decode: None, total: None })
    }

    /// Records that the response is complete, and releases its slot.
    pub(super) fn served(&mut self) {
        self.slot = None;
        let finish = if self.finish == "length" { Finish::Length } else { Finish::Stop };
        self.took = self.serving.take().map(|serving| serving.end(finish, now()));
    }
}
