//! Conversations of one class under way: those between two turns wait here for their next one.

use std::collections::{HashMap, VecDeque};

use crate::workload::{Conversation, Generator, Prompt};

/// A turn of a conversation under way.
pub struct Turn {
    /// Its conversation.
    pub conversation: Conversation,
    /// The slot of a closed loop that it belongs to.
    pub slot: Option<u32>,
    /// What the user said.
    pub said: String,
}

/// The conversations of one class.
#[derive(Default)]
pub struct Talks {
    started: u64,
    /// Conversations between two turns: a closed loop's by slot.
    by_slot: HashMap<u32, Conversation>,
    /// An open loop's, the one that has waited longest first.
    waiting: VecDeque<Conversation>,
}

impl Talks {
    /// The conversation that goes on, or a new one, and what its user says next.
    pub fn next(&mut self, slot: Option<u32>, generator: &Generator) -> (Conversation, Prompt) {
        let going_on = match slot {
            Some(slot) => self.by_slot.remove(&slot),
            None => self.waiting.pop_front(),
        };
        let unfinished = going_on.and_then(|conversation| {
            let prompt = conversation.prompt(generator)?;
            Some((conversation, prompt))
        });
        unfinished.unwrap_or_else(|| {
            self.started += 1;
            let conversation = Conversation::new(generator, self.started - 1);
            let prompt = generator.turn(conversation.number(), 0);
            (conversation, prompt)
        })
    }

    /// A turn has ended with `answer`: its conversation waits for the next one, if it has any left.
    pub fn give_back(&mut self, turn: Turn, answer: String, generator: &Generator) {
        let Turn { mut conversation, slot, said } = turn;
        conversation.answered(said, answer);
        if conversation.turn() >= generator.turns() {
            return;
        }
        match slot {
            Some(slot) => drop(self.by_slot.insert(slot, conversation)),
            None => self.waiting.push_back(conversation),
        }
    }
}
