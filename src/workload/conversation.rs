//! A conversation: what the user says is known beforehand, the history is what the server really answered.

use super::generator::{Generator, Prompt};
use super::tokens::estimate;

/// One turn that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// What the user said.
    pub user: String,
    /// What the server answered.
    pub answer: String,
}

/// A conversation under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    number: u64,
    turns: u32,
    history: Vec<Exchange>,
    history_tokens: u32,
}

impl Conversation {
    /// Conversation `number` (from 0) of `generator`'s run, before its first turn.
    pub fn new(generator: &Generator, number: u64) -> Conversation {
        Conversation { number, turns: generator.turns(), history: Vec::new(), history_tokens: 0 }
    }

    /// Its number, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The turn that is next, from 0.
    pub fn turn(&self) -> u32 {
        self.history.len() as u32
    }

    /// The turns that are over: send them before the next prompt.
    pub fn history(&self) -> &[Exchange] {
        &self.history
    }

    /// What the user says next; `None` after the last turn. Its intended tokens include the history.
    pub fn prompt(&self, generator: &Generator) -> Option<Prompt> {
        (self.turn() < self.turns).then(|| {
            let mut prompt = generator.turn(self.number, self.turn());
            prompt.intended_prompt_tokens = prompt.intended_prompt_tokens.saturating_add(self.history_tokens);
            if prompt.own_nonce.is_none() {
                prompt.reusable_tokens = prompt.reusable_tokens.saturating_add(self.history_tokens);
            }
            prompt
        })
    }

    /// Ends a turn: `answer` is what the server said to `user`.
    pub fn answered(&mut self, user: String, answer: String) {
        self.history_tokens = self.history_tokens.saturating_add(estimate(&user)).saturating_add(estimate(&answer));
        self.history.push(Exchange { user, answer });
    }
}
