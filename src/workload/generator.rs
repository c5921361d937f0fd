//! Generates request k of a scenario. The result depends only on seed, scenario, repeat and k.

mod data;
mod drawn;
mod lead;
mod opening;
mod several;
mod whole;

use std::cell::RefCell;
use std::sync::Arc;

use crate::plan::model::content::{Content, Reuse};
use crate::plan::model::lengths::Range;
use crate::plan::model::talk::Talk;
use crate::plan::{Cache, ContextCut, History};
use crate::units::Seed;

use super::counting::Counting;
use super::digest::{derived, digest};
use super::estimated;
use super::exact::{Around, Exact};
use super::lengths::Sampler;
use super::nonce::{Nonce, NonceKey, Scope};
use super::pauses::Pauses;
use super::prefix::{Groups, Texts};
use super::prompt::{Common, Lengths, Prompt};
use super::prose::{Dice, Ending};
use super::replay::Replayed;
use super::says::Says;
use super::sharing::{Categories, TurnCounts};
use super::tokenizer::TokenizerError;
use super::vocabulary::Topic;
use drawn::Drawn;
use lead::Lead;

/// Writes the prompts of one run.
///
/// The first message of each prompt begins with a nonce. If no two requests share text, each request has its
/// own nonce (in conversation scenarios, each conversation has one); otherwise there is one nonce for the
/// whole attempt. A shared text at the beginning of prompts has one nonce for the attempt (or for its group),
/// regardless of the nonces in the user's messages. If a conversation's oldest turns may be dropped and
/// nothing precedes them, any turn may end up at the front of a prompt, so each turn has a nonce. In a cold
/// scenario, each request begins with its own nonce, even if its texts are shared. If one nonce is common to
/// all requests of the run, every prompt begins with it, and it occurs nowhere else.
#[derive(Clone)]
pub struct Generator {
    content: Content,
    digest: [u8; 32],
    user_key: [u8; 32],
    answer_key: [u8; 32],
    think: Option<Pauses>,
    nonce: Option<NonceKey>,
    system: Option<System>,
    /// Draws the lengths; `None` if all requests have the same length.
    sampler: Option<Sampler>,
    /// The trace that determines the lengths and shared parts of prompts; `None` without a trace.
    replayed: Option<Replayed>,
    /// The data set that provides the users' messages; `None` without a data set.
    drawn: Option<Drawn>,
    groups: Option<Groups>,
    /// The categories of requests, if a profile determines which text prompts share; otherwise `None`.
    categories: Option<Categories>,
    group_texts: RefCell<Texts>,
    turn_counts: Option<TurnCounts>,
    /// The user's text and its number of tokens if it is the same in all requests; otherwise `None`.
    same: Option<(String, u32)>,
    /// Size of the nonce with which all items begin, in bytes; 0 if items have different nonces or none.
    same_nonce: usize,
    /// Whether another class of the run sends the same texts.
    has_twin: bool,
    /// What each request contains: a prompt, or several texts.
    says_what: Says,
    /// Writes texts of exact length; `None` if the model's tokenizer is unknown.
    exact: Option<Exact>,
}

/// The system message and its topic.
#[derive(Clone)]
struct System {
    text: Arc<str>,
    tokens: u32,
    topic: &'static Topic,
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator").field("digest", &self.digest()).finish_non_exhaustive()
    }
}

impl Generator {
    /// Creates the generator of a run. Without a nonce key, prompts have no nonce.
    pub fn new(content: &Content, seed: Seed, repeat: u32, nonce: Option<NonceKey>) -> Generator {
        Generator::made(content, (seed, repeat), nonce, None)
    }

    /// Creates the generator of a run whose prompts have exactly the requested number of tokens, as counted
    /// by `counting`. The number includes the user's text, everything before it, and all text that the
    /// server adds around them. `of` contains the seed and the repeat.
    pub fn counted(
        content: &Content,
        of: (Seed, u32),
        nonce: Option<NonceKey>,
        counting: Counting,
    ) -> Result<Generator, TokenizerError> {
        let exact = Exact::new(counting, content.reuse == Reuse::Conversation)?;
        Ok(Generator::made(content, of, nonce, Some(exact)))
    }

    fn made(
        content: &Content,
        (seed, repeat): (Seed, u32),
        nonce: Option<NonceKey>,
        exact: Option<Exact>,
    ) -> Generator {
        let digest = digest(content, seed, repeat);
        let user_key = derived(&digest, b"user");
        let answer_key = derived(&digest, b"answer");
        let think = content.talk.think.map(|think| Pauses::new(&think, derived(&digest, b"think")));
        let groups = content.prefix.map(|prefix| Groups::new(prefix, derived(&digest, b"prefix groups")));
        let lengths_key = derived(&digest, b"lengths");
        let categories = content.sharing.as_ref();
        let categories = categories.map(|rows| Categories::new(rows, content.lengths.as_ref(), lengths_key));
        let sampler = content.lengths.as_ref().map(|lengths| Sampler::new(lengths, lengths_key));
        let keys = [b"trace blocks".as_slice(), b"trace texts"].map(|role| derived(&digest, role));
        let turn_counts = content.turn_counts.as_ref();
        let turn_counts = turn_counts.map(|rows| TurnCounts::new(rows, derived(&digest, b"turns")));
        let replayed = content.trace.as_ref().map(|trace| Replayed::new(trace, keys));
        let drawn = content.data.as_ref().map(|data| Drawn::new(data, &derived(&digest, b"data order")));
        let content = content.clone();
        let mut generator = Generator {
            content,
            digest,
            user_key,
            answer_key,
            think,
            nonce,
            system: None,
            sampler,
            replayed,
            drawn,
            groups,
            categories,
            group_texts: RefCell::default(),
            turn_counts,
            same: None,
            same_nonce: nonce.map_or(0, same_nonce),
            has_twin: false,
            says_what: Says::default(),
            exact,
        };
        generator.system = generator.system_message();
        if generator.content.reuse == Reuse::SamePrompt {
            generator.same = Some(generator.user((0, 0), &generator.lead(0), None));
        }
        generator
    }

    fn system_message(&self) -> Option<System> {
        let wanted = self.content.system_tokens;
        (wanted > 0).then(|| {
            let mut dice = Dice::new(&derived(&self.digest, b"system"), 0, 0);
            let topic = dice.topic();
            let nonce = self.nonce.map(|key| Nonce::new(key, Scope::Attempt));
            let (text, tokens) = self.alone(&mut dice, topic, nonce, (wanted, Ending::Rule));
            System { text: text.into(), tokens, topic }
        })
    }

    /// Writes a single text of the requested length. Returns the text and its actual number of tokens.
    fn alone(
        &self,
        dice: &mut Dice,
        topic: &'static Topic,
        nonce: Option<Nonce>,
        wanted: (u32, Ending),
    ) -> (String, u32) {
        match &self.exact {
            Some(exact) => exact.alone(dice, topic, nonce, wanted),
            None => estimated::write(dice, topic, nonce, wanted),
        }
    }

    /// Returns request `k`, counted from 0. In a conversation scenario, this is the first turn of
    /// conversation `k`.
    pub fn request(&self, k: u64) -> Prompt {
        self.turn(k, 0)
    }

    /// Returns the prompt of turn `turn` (counted from 0) of conversation `conversation`, without the
    /// history.
    pub fn turn(&self, conversation: u64, turn: u32) -> Prompt {
        let mut prompt = self.with_more(self.says(conversation, turn), conversation);
        if self.has_twin && prompt.own_nonce.is_none() {
            prompt.common = Common::All;
        }
        prompt
    }

    /// Records that another class of the run sends the same texts. Texts that are unique within this class
    /// by construction are then not unique in the run.
    pub(crate) fn has_twin(&mut self) {
        self.has_twin = true;
    }

    fn says(&self, conversation: u64, turn: u32) -> Prompt {
        if let Some(replayed) = &self.replayed {
            return self.replay(replayed, conversation);
        }
        if let Some(drawn) = &self.drawn {
            return self.said(drawn, conversation, turn);
        }
        let lead = self.lead(conversation);
        let is_cold = self.content.cache == Cache::Cold;
        let own_nonce = if is_cold { self.own_nonce(conversation, turn) } else { None };
        let (user, tokens) = match &self.same {
            Some(same) => same.clone(),
            None => self.user((conversation, turn), &lead, own_nonce.as_deref()),
        };
        let common = match self.same {
            _ if is_cold => Common::Nothing,
            Some(_) if self.groups.is_none() => Common::Same,
            Some(_) if lead.is_common() => Common::All,
            // The users' messages are drawn separately for each request and turn, so they are unique by
            // construction.
            _ => self.front(lead.common),
        };
        Prompt {
            system: lead.text,
            user,
            more: Vec::new(),
            own_nonce,
            intended_prompt_tokens: tokens + lead.tokens,
            system_tokens: lead.tokens,
            // From the second turn of a conversation on, the server has already seen the lead of this
            // conversation.
            seen_tokens: if turn > 0 && !is_cold { lead.tokens } else { 0 },
            common,
            output_tokens: self.lengths(conversation, turn).output_tokens,
        }
    }

    /// Returns the scripted response to turn `turn` of conversation `conversation`, and its number of
    /// tokens.
    pub fn answer(&self, conversation: u64, turn: u32) -> (String, u32) {
        if let Some(drawn) = &self.drawn {
            return self.answered(drawn, conversation, turn);
        }
        let mut dice = Dice::new(&self.answer_key, conversation, turn);
        let topic = self.topic(conversation);
        self.alone(&mut dice, topic, None, (self.lengths(conversation, turn).output_tokens, Ending::Nothing))
    }

    /// Returns how long the user thinks before turn `turn` (1 or later) of conversation `conversation`, in
    /// nanoseconds.
    pub fn think(&self, conversation: u64, turn: u32) -> u64 {
        self.think.as_ref().map_or(0, |pauses| pauses.at(conversation, turn))
    }

    /// Returns the scenario's conversation settings.
    pub fn talk(&self) -> &Talk {
        &self.content.talk
    }

    /// Returns request `k` of a trace.
    fn replay(&self, replayed: &Replayed, k: u64) -> Prompt {
        let is_cold = self.content.cache == Cache::Cold;
        let own_nonce = if is_cold { self.own_nonce(k, 0) } else { None };
        let fitted = self.fitted_replay(replayed, k, own_nonce.as_deref());
        let (user, intended_prompt_tokens) = fitted.unwrap_or_else(|| replayed.prompt(k, self.nonce));
        Prompt {
            user,
            own_nonce,
            intended_prompt_tokens,
            // A text without blocks is unique to the request. A text with blocks may begin like any other
            // text.
            common: match replayed.request(k).blocks.is_empty() {
                _ if is_cold => Common::Nothing,
                true => self.front(0),
                false => Common::All,
            },
            output_tokens: replayed.request(k).output_tokens,
            ..Prompt::default()
        }
    }

    /// Returns how much an item shares with other items, if its first `bytes` bytes are common to them and
    /// a unique text follows. If all items have the same nonce, the nonce is common, too.
    fn front(&self, bytes: usize) -> Common {
        match bytes.max(self.same_nonce) {
            0 => Common::Nothing,
            bytes => Common::Front(bytes),
        }
    }

    /// Returns the nonce for a request that must not share text with any other request; `None` if
    /// requests have no nonce.
    fn own_nonce(&self, item: u64, turn: u32) -> Option<String> {
        let nonce = Nonce::new(self.nonce?, Scope::Request(item, turn));
        let mut text = String::with_capacity(32);
        nonce.push(&mut text);
        Some(text)
    }

    /// Returns the length of turn `turn` of item `item` (a request or a conversation, counted from 0). The
    /// length does not include the history or anything before the user's first message. The text is not
    /// created.
    pub fn lengths(&self, item: u64, turn: u32) -> Lengths {
        let lengths = self.whole_lengths(item, turn);
        let shared = if turn == 0 { self.shared_tokens(item, lengths) } else { 0 };
        let output_tokens = if self.says_what == Says::Prompt { lengths.output_tokens } else { 0 };
        Lengths { prompt_tokens: lengths.prompt_tokens - shared, output_tokens }
    }

    /// Returns the largest number of tokens that a prompt may have, without the history.
    pub(crate) fn most_prompt_tokens(&self) -> u32 {
        // The lengths of records in a data set include their system message.
        let lead = if self.drawn.is_some() { 0 } else { self.least_lead() };
        self.content.prompt_tokens.saturating_add(lead)
    }

    /// Returns the number of tokens of the shortest possible prompt, without the text before the user's
    /// first message. `None` if there is no minimum. With exact lengths, there is one, because the chat
    /// template itself takes tokens.
    pub fn shortest_prompt(&self) -> Option<u32> {
        // The texts of a data set have fixed lengths, so there is no minimum.
        let exact = self.exact.as_ref().filter(|_| self.drawn.is_none())?;
        Some(exact.shortest(self.has_lead()))
    }

    /// Returns the smallest and the largest number of prompt tokens that the scenario requests, without the
    /// text before the user's first message.
    pub(crate) fn prompt_range(&self) -> Range {
        let one = Range::one(self.content.prompt_tokens);
        self.content.lengths.as_ref().map_or(one, |lengths| lengths.prompt_range())
    }

    /// Returns the SHA-256 over everything that determines the texts, without the nonce, as 64 hex digits.
    /// The digest is equal for runs whose requests have equal texts.
    pub fn digest(&self) -> String {
        let Talk { think: _, history, sessions: _, context_limit, context_cut } = self.content.talk;
        let mut digest = self.digest;
        if history == History::Scripted {
            digest = derived(&digest, b"scripted");
        }
        if let Some(limit) = context_limit {
            digest = derived(&digest, format!("{} at {limit}", context_cut.name()).as_bytes());
        }
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the topic of item `item`. All turns of a conversation and their responses have the same
    /// topic.
    fn topic(&self, item: u64) -> &'static Topic {
        self.system.as_ref().map_or_else(|| Dice::new(&self.user_key, item, 0).topic(), |system| system.topic)
    }

    /// Returns the user's text and its number of tokens. With exact lengths, the number includes everything
    /// that is added around the text, except `lead`.
    fn user(&self, (item, turn): (u64, u32), lead: &Lead, own_nonce: Option<&str>) -> (String, u32) {
        let mut dice = Dice::new(&self.user_key, item, turn);
        let topic = match &self.system {
            Some(system) => system.topic,
            None if turn > 0 => self.topic(item),
            None => dice.topic(),
        };
        // If a request contains several texts, each is counted separately.
        let is_first = turn == 0 || self.says_what != Says::Prompt;
        let is_led = is_first && lead.text.is_some();
        let nonce = self.user_scope(item, turn, is_led).and_then(|scope| Some(Nonce::new(self.nonce?, scope)));
        let wanted = match self.says_what {
            Says::Documents { query_tokens, .. } if turn == 0 => query_tokens,
            _ => self.lengths(item, turn).prompt_tokens,
        };
        match &self.exact {
            Some(exact) if is_first => {
                let (lead, lead_tokens) = (lead.text.as_ref(), lead.tokens);
                let around = Around { lead, lead_tokens, own_nonce, history: &[] };
                exact.first(&mut dice, topic, nonce, (wanted, around))
            }
            _ => self.alone(&mut dice, topic, nonce, (wanted, Ending::Question)),
        }
    }

    /// Whether later turns of a conversation may be at the front of a prompt, because older turns may be
    /// dropped.
    fn may_open_a_prompt(&self, item: u64) -> bool {
        let Talk { context_limit, context_cut, .. } = self.content.talk;
        let is_bare = self.system.is_none() && self.groups.is_none();
        let read = self.drawn.as_ref().map_or(0, |drawn| self.lead_of_data(drawn, item));
        context_limit.is_some() && context_cut == ContextCut::OldestTurns && is_bare && read == 0
    }

    /// Returns the scope of the nonce of a user's message; `None` if the message has none. `is_led` is true
    /// if a lead precedes the message.
    fn user_scope(&self, item: u64, turn: u32, is_led: bool) -> Option<Scope> {
        match self.content.reuse {
            // A nonce that is common to all requests occurs only at the front of a prompt.
            _ if is_led && self.nonce.is_some_and(NonceKey::is_one_for_all) => None,
            Reuse::None => Some(Scope::Item(item)),
            Reuse::Conversation if turn == 0 => Some(Scope::Item(item)),
            Reuse::Conversation => self.may_open_a_prompt(item).then_some(Scope::Request(item, turn)),
            Reuse::SamePrompt | Reuse::SharedSystem => {
                (self.system.is_none() && self.groups.is_none()).then_some(Scope::Attempt)
            }
        }
    }
}

/// Returns the size of the nonce if `key` gives the same nonce to all items, in bytes; 0 if items have
/// different nonces.
fn same_nonce(key: NonceKey) -> usize {
    let [first, second] = [0, 1].map(|item| {
        let mut text = String::new();
        Nonce::new(key, Scope::Item(item)).push(&mut text);
        text
    });
    if first == second { first.len() } else { 0 }
}
