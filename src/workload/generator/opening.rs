//! Creates the text before an item's first user message, which consists of the system message and a text
//! that requests share. Also returns the lengths of items and of this text.

use std::sync::Arc;

use crate::plan::TraceRequest;
use crate::plan::model::content::{Content, Reuse};

use super::super::digest::derived;
use super::super::nonce::{Nonce, Scope};
use super::super::prefix::{Groups, Opening};
use super::super::prompt::Lengths;
use super::super::prose::{Dice, Ending};
use super::super::tokens::estimate;
use super::Generator;
use super::lead::Lead;

impl Generator {
    /// Returns everything before an item's first user message: the system message, and the text that the
    /// item shares with its group.
    pub(super) fn lead(&self, item: u64) -> Lead {
        let system = self.system.as_ref();
        let mut lead = Lead {
            text: system.map(|system| Arc::clone(&system.text)),
            tokens: system.map_or(0, |system| system.tokens),
            common: system.map_or(0, |system| system.text.len()),
        };
        if let Some(groups) = &self.groups {
            let (text, is_common) = self.opening(groups, item);
            lead.and(text, is_common);
        } else if let Some(text) = self.common(item) {
            lead.and(text, true);
        }
        lead
    }

    /// Returns the text of the item's group, or the item's own text, with its number of tokens, and whether
    /// other items share the text. With the order `tile`, a text is no longer in the server's cache when it
    /// is repeated, so it is not treated as shared.
    fn opening(&self, groups: &Groups, item: u64) -> ((Arc<str>, u32), bool) {
        let tokens = groups.tokens();
        match groups.opening(item) {
            Opening::Shared { group } => {
                let write = || self.opening_text(b"prefix", group.into(), Scope::Group(group), tokens);
                (self.group_texts.borrow_mut().get(group, write), !groups.are_tiles())
            }
            Opening::Own => {
                let (text, tokens) = self.opening_text(b"own opening", item, Scope::Item(item), tokens);
                ((text.into(), tokens), false)
            }
        }
    }

    /// Returns the text that the item shares with other items according to a profile, truncated to the length
    /// of the shared part; `None` if the item shares no text.
    fn common(&self, item: u64) -> Option<(Arc<str>, u32)> {
        let categories = self.categories.as_ref()?;
        let wanted = self.shared_tokens(item, self.whole_lengths(item, 0));
        let member = categories.member(item);
        let most = categories.most_tokens(member.category);
        if wanted == 0 {
            return None;
        }
        let write = || self.opening_text(b"category", member.group.into(), Scope::Group(member.group), most);
        let (text, tokens) = self.group_texts.borrow_mut().get(member.group, write);
        if wanted >= tokens {
            return Some((text, tokens));
        }
        // Prose is ASCII, so every character is one byte and it can be truncated anywhere.
        let end = (text.len() as u64 * u64::from(wanted) / u64::from(tokens)) as usize;
        let cut = &text[..end];
        let tokens = self.exact.as_ref().map_or_else(|| estimate(cut), |exact| exact.count(cut));
        Some((cut.into(), tokens))
    }

    /// Returns a text of `tokens` tokens. It begins with the nonce, unless a system message precedes the
    /// text.
    fn opening_text(&self, role: &[u8], item: u64, scope: Scope, tokens: u32) -> (String, u32) {
        let nonce = if self.system.is_none() { self.nonce } else { None };
        let nonce = nonce.map(|key| Nonce::new(key, scope));
        let mut dice = Dice::new(&derived(&self.digest, role), item, 0);
        let topic = dice.topic();
        self.alone(&mut dice, topic, nonce, (tokens, Ending::Rule))
    }

    /// Returns the length of turn `turn` of `item`, including the text that it shares with other items
    /// according to a profile.
    pub(super) fn whole_lengths(&self, item: u64, turn: u32) -> Lengths {
        let of_category = self.categories.as_ref().filter(|_| turn == 0).and_then(|one| one.lengths(item));
        if let Some(lengths) = of_category {
            return lengths;
        }
        if let Some(sampler) = &self.sampler {
            return sampler.draw(item, turn);
        }
        if let Some(replayed) = &self.replayed {
            let TraceRequest { prompt_tokens, output_tokens, .. } = *replayed.request(item);
            return Lengths { prompt_tokens, output_tokens };
        }
        if let Some(drawn) = &self.drawn {
            return self.lengths_of_data(drawn, item, turn);
        }
        let Content { prompt_tokens, output_tokens, .. } = self.content;
        Lengths { prompt_tokens, output_tokens }
    }

    /// Returns how many tokens the first prompt of `item` shares with other items according to a profile. The
    /// number is reduced to leave room for the item's own text, and is 0 if too few tokens remain.
    pub(super) fn shared_tokens(&self, item: u64, lengths: Lengths) -> u32 {
        let tokens = self.categories.as_ref().map_or(0, |categories| categories.tokens(item, lengths.prompt_tokens));
        // With a chat template, the item's own part of the prompt cannot be shorter than this.
        let own = self.shortest_prompt().unwrap_or(0);
        let tokens = tokens.min(lengths.prompt_tokens.saturating_sub(own));
        if tokens < LEAST_COMMON { 0 } else { tokens }
    }

    /// Whether any text may precede the user's first message.
    pub(super) fn has_lead(&self) -> bool {
        self.system.is_some() || self.groups.is_some() || self.categories.is_some()
    }

    /// Returns the smallest number of tokens before the user's first message. The shared text of a profile
    /// is not included, because not all requests have one.
    pub(crate) fn least_lead(&self) -> u32 {
        self.system.as_ref().map_or(0, |system| system.tokens) + self.groups.as_ref().map_or(0, Groups::tokens)
    }

    /// Returns the number of tokens before the user's first message in item `item`, that is, of the system
    /// message and the shared text.
    pub(crate) fn lead_tokens(&self, item: u64) -> u32 {
        if let Some(drawn) = &self.drawn {
            return self.lead_of_data(drawn, item);
        }
        let common = if self.categories.is_some() { self.shared_tokens(item, self.whole_lengths(item, 0)) } else { 0 };
        self.least_lead() + common
    }

    /// Returns the number of turns of conversation `item` if it does not end early; 1 in scenarios without
    /// conversations.
    pub fn turns(&self, item: u64) -> u32 {
        let turns = match (self.content.reuse, &self.turn_counts) {
            (Reuse::Conversation, Some(counts)) => counts.at(item),
            (Reuse::Conversation, None) => self.content.turns,
            _ => 1,
        };
        self.drawn.as_ref().map_or(turns, |drawn| turns.min(drawn.turns(item)))
    }
}

/// Minimum length of a shared text, in tokens. Beginnings that are shorter than a nonce do not distinguish
/// two groups.
const LEAST_COMMON: u32 = 16;
