//! Prompts of a data set: the users' messages, verbatim.
//!
//! The nonce is at the front of the first message, so that a repeated record shares no text with its
//! previous use, unless one nonce is common to all.

use std::sync::Arc;

use crate::plan::{Cache, Dialogue};

use super::super::exact::Around;
use super::super::nonce::{Nonce, Scope};
use super::super::prompt::{Common, Lengths, Prompt};
use super::super::tokens::estimate;
use super::Generator;
use super::drawn::Drawn;

impl Generator {
    /// Returns the user's message in turn `turn` of record `item`.
    pub(super) fn said(&self, drawn: &Drawn, item: u64, turn: u32) -> Prompt {
        let dialogue = drawn.record(item);
        let system: Option<Arc<str>> = self.system_of_data(dialogue, item).map(Into::into);
        let user = self.user_of_data(dialogue, item, turn);
        let is_cold = self.content.cache == Cache::Cold;
        let own_nonce = if is_cold { self.own_nonce(item, turn) } else { None };
        let lead_tokens = system.as_ref().map_or(0, |system| self.alone_tokens(system));
        let around = Around { lead: system.as_ref(), lead_tokens, own_nonce: own_nonce.as_deref(), history: &[] };
        let whole = || self.exact.as_ref()?.whole(&user, around).ok();
        let first = if turn == 0 { whole() } else { None };
        let intended_prompt_tokens = first.unwrap_or_else(|| lead_tokens.saturating_add(self.alone_tokens(&user)));
        Prompt {
            system,
            user,
            more: Vec::new(),
            intended_prompt_tokens,
            system_tokens: lead_tokens,
            seen_tokens: if turn > 0 && !is_cold { lead_tokens } else { 0 },
            common: if is_cold || self.opens_alone(dialogue, item) { Common::Nothing } else { Common::All },
            own_nonce,
            output_tokens: self.output_of_data(drawn, dialogue, turn),
        }
    }

    /// Whether this record would open differently as another item. If so, no two items have any
    /// text in common.
    fn opens_alone(&self, dialogue: &Dialogue, item: u64) -> bool {
        let other = item.wrapping_add(1);
        self.nonce.is_some()
            && match dialogue.system {
                Some(_) => self.system_of_data(dialogue, item) != self.system_of_data(dialogue, other),
                None => self.user_of_data(dialogue, item, 0) != self.user_of_data(dialogue, other, 0),
            }
    }

    /// Returns the response to turn `turn` of record `item`, with its number of tokens.
    pub(super) fn answered(&self, drawn: &Drawn, item: u64, turn: u32) -> (String, u32) {
        let asked = drawn.record(item).asked.get(turn as usize);
        let answer = asked.and_then(|asked| asked.answer.as_deref()).unwrap_or_default();
        (answer.to_owned(), self.alone_tokens(answer))
    }

    /// Returns the length of turn `turn` of record `item`, not counting its system message and
    /// history.
    pub(super) fn lengths_of_data(&self, drawn: &Drawn, item: u64, turn: u32) -> Lengths {
        let dialogue = drawn.record(item);
        let prompt_tokens = self.alone_tokens(&self.user_of_data(dialogue, item, turn));
        Lengths { prompt_tokens, output_tokens: self.output_of_data(drawn, dialogue, turn) }
    }

    /// Returns the number of tokens of the system message of record `item`.
    pub(super) fn lead_of_data(&self, drawn: &Drawn, item: u64) -> u32 {
        let system = self.system_of_data(drawn.record(item), item);
        system.map_or(0, |system| self.alone_tokens(&system))
    }

    /// Returns the number of tokens of a single text, counted by the model's tokenizer if there is
    /// one, otherwise estimated.
    fn alone_tokens(&self, text: &str) -> u32 {
        self.exact.as_ref().and_then(|exact| exact.bare(text)).unwrap_or_else(|| estimate(text))
    }

    fn system_of_data(&self, dialogue: &Dialogue, item: u64) -> Option<String> {
        Some(self.opened((Some(Scope::Item(item)), dialogue.system.as_deref()?)))
    }

    fn user_of_data(&self, dialogue: &Dialogue, item: u64, turn: u32) -> String {
        let text = dialogue.asked.get(turn as usize).map_or("", |asked| &asked.user);
        let scope = match dialogue.system {
            Some(_) => None,
            None => self.user_scope(item, turn, false),
        };
        self.opened((scope, text))
    }

    /// Returns a text after its nonce, if it has one.
    fn opened(&self, (scope, text): (Option<Scope>, &str)) -> String {
        let mut out = String::with_capacity(text.len() + 32);
        if let Some((scope, key)) = scope.zip(self.nonce) {
            Nonce::new(key, scope).push(&mut out);
        }
        out.push_str(text);
        out
    }

    /// Returns the number of requested tokens: the scenario's, or that of the recorded response, as
    /// declared or as counted.
    fn output_of_data(&self, drawn: &Drawn, dialogue: &Dialogue, turn: u32) -> u32 {
        let asked = dialogue.asked.get(turn as usize);
        let counted = || {
            let answer = asked?.answer.as_deref()?;
            self.exact.as_ref()?.bare(answer)
        };
        let of_answer = || asked.and_then(|asked| asked.declared).or_else(counted);
        let estimated = || asked.map_or(1, |asked| asked.output_tokens);
        drawn.output_tokens.or_else(of_answer).unwrap_or_else(estimated).max(1)
    }
}
