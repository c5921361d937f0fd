//! Prompts of a data set: what its users said, as it stands there.
//!
//! Which record item k is, is a pure function of the run's key and k: all records come before any comes again. The nonce
//! stands in front of the first message, so that a record that comes again shares nothing with the time before, unless one
//! nonce is for all.

use std::cell::RefCell;
use std::sync::Arc;

use crate::dataset::sample;
use crate::plan::{Cache, Corpus, DataOrder, DataSource, Dialogue};
use crate::units::Seed;

use super::{Common, Generator, Lengths, Nonce, Prompt, Scope};
use crate::workload::exact::Around;
use crate::workload::tokens::estimate;

/// Orders that are remembered: conversations of several passes may be under way at once.
const ORDERS: usize = 4;

/// The records of a data set in the order in which a run sends them.
#[derive(Clone)]
pub(super) struct Drawn {
    source: Arc<DataSource>,
    order: DataOrder,
    seed: Seed,
    output_tokens: Option<u32>,
    /// Orders of the last passes that were asked for, by pass.
    orders: RefCell<Vec<(u64, Arc<[u32]>)>>,
}

impl Drawn {
    pub(super) fn new(Corpus { order, output_tokens, source }: &Corpus, key: &[u8; 32]) -> Drawn {
        let seed = Seed(u64::from_le_bytes(std::array::from_fn(|at| key[at])));
        let (order, output_tokens, orders) = (*order, *output_tokens, RefCell::default());
        Drawn { source: Arc::clone(source), order, seed, output_tokens, orders }
    }

    /// The record of item `item`.
    fn record(&self, item: u64) -> &Dialogue {
        let count = self.source.dialogues.len() as u64;
        let (pass, at) = (item / count, (item % count) as usize);
        let at = match self.order {
            DataOrder::File => at,
            DataOrder::Shuffled => self.order_of(pass)[at] as usize,
        };
        &self.source.dialogues[at]
    }

    fn order_of(&self, pass: u64) -> Arc<[u32]> {
        let mut orders = self.orders.borrow_mut();
        if let Some((_, order)) = orders.iter().find(|(known, _)| *known == pass) {
            return Arc::clone(order);
        }
        let count = u32::try_from(self.source.dialogues.len()).unwrap_or(u32::MAX);
        let order: Arc<[u32]> = sample::order(count, self.seed, pass).into();
        if orders.len() == ORDERS {
            orders.remove(0);
        }
        orders.push((pass, Arc::clone(&order)));
        order
    }

    /// Questions of item `item`.
    pub(super) fn turns(&self, item: u64) -> u32 {
        u32::try_from(self.record(item).asked.len()).unwrap_or(u32::MAX)
    }
}

impl Generator {
    /// What the user says in turn `turn` of record `item`.
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
            intended_prompt_tokens,
            system_tokens: lead_tokens,
            seen_tokens: if turn > 0 && !is_cold { lead_tokens } else { 0 },
            common: if is_cold || self.opens_alone(dialogue, item) { Common::Nothing } else { Common::All },
            own_nonce,
            output_tokens: self.output_of_data(drawn, dialogue, turn),
        }
    }

    /// Whether this record would open otherwise as another item: then no two items have anything in common.
    fn opens_alone(&self, dialogue: &Dialogue, item: u64) -> bool {
        let other = item.wrapping_add(1);
        self.nonce.is_some()
            && match dialogue.system {
                Some(_) => self.system_of_data(dialogue, item) != self.system_of_data(dialogue, other),
                None => self.user_of_data(dialogue, item, 0) != self.user_of_data(dialogue, other, 0),
            }
    }

    /// What was answered to turn `turn` of record `item`, and its tokens.
    pub(super) fn answered(&self, drawn: &Drawn, item: u64, turn: u32) -> (String, u32) {
        let asked = drawn.record(item).asked.get(turn as usize);
        let answer = asked.and_then(|asked| asked.answer.as_deref()).unwrap_or_default();
        (answer.to_owned(), self.alone_tokens(answer))
    }

    /// How long turn `turn` of record `item` is, its system message and history left out.
    pub(super) fn lengths_of_data(&self, drawn: &Drawn, item: u64, turn: u32) -> Lengths {
        let dialogue = drawn.record(item);
        let prompt_tokens = self.alone_tokens(&self.user_of_data(dialogue, item, turn));
        Lengths { prompt_tokens, output_tokens: self.output_of_data(drawn, dialogue, turn) }
    }

    /// Tokens of the system message of record `item`.
    pub(super) fn lead_of_data(&self, drawn: &Drawn, item: u64) -> u32 {
        let system = self.system_of_data(drawn.record(item), item);
        system.map_or(0, |system| self.alone_tokens(&system))
    }

    /// Tokens of a text that stands alone: the model's, or else estimated.
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

    /// A text behind its nonce, where it has one.
    fn opened(&self, (scope, text): (Option<Scope>, &str)) -> String {
        let mut out = String::with_capacity(text.len() + 32);
        if let Some((scope, key)) = scope.zip(self.nonce) {
            Nonce::new(key, scope).push(&mut out);
        }
        out.push_str(text);
        out
    }

    /// Tokens asked for: what the scenario says, or those of the answer, as declared or as they are counted.
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
