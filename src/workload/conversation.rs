//! A conversation. The user's messages are known in advance; the history contains either the server's
//! actual responses or scripted ones.

use std::sync::Arc;

use crate::plan::ContextCut;

use super::exchange::Exchange;
use super::generator::Generator;
use super::prompt::{Common, Prompt};
use super::tokens::estimate;
use super::trail::{Role, Trail};

/// A conversation in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    number: u64,
    turn: u32,
    history: Vec<Exchange>,
    /// Number of tokens of the history.
    tokens: u32,
    /// How many leading tokens of the history the server has seen, because it has received or generated
    /// them.
    seen: u32,
    /// The user's next message, whose token counts include the history; `None` after the last turn.
    next: Option<Prompt>,
    /// The trail of everything before the next message, which is compared with the beginnings of other
    /// requests; `None` until it is first needed. It is then extended with every turn.
    trail: Option<Trail>,
}

impl Conversation {
    /// Creates conversation `number` (counted from 0) of `generator`'s run, before its first turn.
    pub fn new(generator: &Generator, number: u64) -> Conversation {
        let next = Some(generator.turn(number, 0));
        Conversation { number, turn: 0, history: Vec::new(), tokens: 0, seen: 0, next, trail: None }
    }

    /// Returns the conversation's number, counted from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the index of the next turn, counted from 0.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns the completed turns, which are sent before the next prompt. The oldest turns may
    /// have been dropped.
    pub fn history(&self) -> &[Exchange] {
        &self.history
    }

    /// Returns the user's next message; `None` after the last turn. Its intended tokens include the
    /// history.
    pub fn prompt(&self) -> Option<&Prompt> {
        self.next.as_ref()
    }

    /// Returns the trail of the next prompt and its history if all of it must be compared with other
    /// requests; otherwise `None`. `salt` must be the same for all turns of the conversation. The trail of
    /// the history is kept and extended with every turn.
    pub(crate) fn whole_trail(&mut self, salt: u32) -> Option<Arc<Trail>> {
        let Prompt { common, system, system_tokens, user, intended_prompt_tokens, .. } = self.next.as_ref()?;
        if !matches!(common, Common::All | Common::Same) {
            return None;
        }
        let before = self.trail.take().unwrap_or_else(|| {
            let mut trail = Trail::new(salt);
            if let Some(system) = system {
                trail.say(Role::System, system, *system_tokens);
            }
            self.history.iter().for_each(|exchange| exchange.say(&mut trail));
            trail
        });
        let mut whole = before.clone();
        let own = intended_prompt_tokens.saturating_sub(*system_tokens).saturating_sub(self.tokens);
        whole.say(Role::User, user, own);
        self.trail = Some(before);
        Some(Arc::new(whole))
    }

    /// Ends a turn with the server's response `answer`, which has `counted` tokens if the server reported
    /// their number.
    pub fn answered(&mut self, generator: &Generator, answer: String, counted: Option<u32>) {
        let tokens = counted.unwrap_or_else(|| estimate(&answer));
        self.goes_on(generator, answer, tokens);
        // The server has also seen its own response.
        self.seen = self.tokens;
        self.prepare(generator);
    }

    /// Ends a turn whose response is scripted.
    pub fn scripted(&mut self, generator: &Generator) {
        let (answer, tokens) = generator.answer(self.number, self.turn);
        self.goes_on(generator, answer, tokens);
        self.seen = self.tokens.saturating_sub(tokens);
        self.prepare(generator);
    }

    fn goes_on(&mut self, generator: &Generator, answer: String, answer_tokens: u32) {
        let Some(prompt) = self.next.take() else { return };
        let before = generator.lead_tokens(self.number).saturating_add(self.tokens);
        let tokens = prompt.intended_prompt_tokens.saturating_sub(before).saturating_add(answer_tokens);
        self.tokens = self.tokens.saturating_add(tokens);
        let exchange = Exchange { user: prompt.user, answer, tokens, answer_tokens };
        if let Some(trail) = &mut self.trail {
            exchange.say(trail);
        }
        self.history.push(exchange);
        self.turn += 1;
    }

    /// Creates the next prompt, and drops old turns if the context limit requires it.
    fn prepare(&mut self, generator: &Generator) {
        if self.turn >= generator.turns(self.number) {
            return;
        }
        let mut prompt = generator.turn(self.number, self.turn);
        let talk = generator.talk();
        if let Some(limit) = talk.context_limit {
            let alone = prompt.intended_prompt_tokens.saturating_add(prompt.output_tokens);
            let room = limit.saturating_sub(alone);
            if self.tokens > room && talk.context_cut == ContextCut::End {
                return;
            }
            self.cut_to(room);
        }
        generator.behind(&mut prompt, (self.number, self.turn), (&self.history, self.tokens));
        if prompt.own_nonce.is_none() {
            prompt.seen_tokens = prompt.seen_tokens.saturating_add(self.seen);
        }
        self.next = Some(prompt);
    }

    /// Drops the oldest turns until the history has at most `room` tokens. The remaining turns then
    /// follow a different text, so the server has not seen any of the history at its new position.
    fn cut_to(&mut self, room: u32) {
        let mut dropped = 0;
        while self.tokens > room && dropped < self.history.len() {
            self.tokens -= self.history[dropped].tokens;
            dropped += 1;
        }
        if dropped > 0 {
            self.history.drain(..dropped);
            self.seen = 0;
            self.trail = None;
        }
    }
}
