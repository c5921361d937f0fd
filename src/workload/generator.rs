//! Request k of a scenario, as a pure function of seed, scenario, repeat and k.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::plan::scenario::{Content, Reuse};
use crate::units::Seed;

use super::exact::{Counting, Exact};
use super::nonce::{self, Nonce, NonceKey, Scope};
use super::prose::{self, Dice, Ending};
use super::tokenizer::TokenizerError;
use super::tokens::CHARS_PER_TOKEN;
use super::words::Topic;

/// What one request says anew; in a conversation the history comes on top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The system message, where the scenario has one.
    pub system: Option<Arc<str>>,
    /// The user's message.
    pub user: String,
    /// Tokens that are meant to be sent. By [`estimate`](super::estimate): system, history and user, without the chat
    /// template; with a tokenizer: all that the model is given, as it was encoded, the history by the estimate.
    pub intended_prompt_tokens: u32,
    /// Of these, the leading ones that an earlier request of the run carries too, where the scenario declares so: what an
    /// endless prefix cache could give back. All of a prompt at most; a server always computes its last token.
    pub reusable_tokens: u32,
    /// Tokens asked for.
    pub output_tokens: u32,
}

/// How long a request is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Tokens of the user's text.
    pub prompt_tokens: u32,
    /// Tokens asked for.
    pub output_tokens: u32,
}

/// Writes the prompts of one run.
///
/// A nonce opens the first message of each prompt. Where no two requests share text it is new for each request, in
/// conversations for each conversation, else for each attempt at the run. A shared system prompt, being the first
/// message of all prompts, has one for the attempt, whatever the user's messages have.
#[derive(Clone)]
pub struct Generator {
    content: Content,
    digest: [u8; 32],
    user_key: [u8; 32],
    nonce: Option<NonceKey>,
    system: Option<System>,
    /// The user's text and its tokens, where all requests carry the same.
    same: Option<(String, u32)>,
    /// Makes texts of exact lengths, where the model's tokenizer is known.
    exact: Option<Exact>,
}

/// The system message and what it is about.
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
    /// The generator of a run; without a nonce key prompts are sent verbatim.
    pub fn new(content: &Content, seed: Seed, repeat: u32, nonce: Option<NonceKey>) -> Generator {
        Generator::made(content, (seed, repeat), nonce, None).expect("only a tokenizer can fail")
    }

    /// The generator of a run whose prompts have exactly the asked number of tokens, as `counting` counts them: system
    /// message and user's text together, with all that the server puts around them.
    pub fn counted(
        content: &Content,
        (seed, repeat): (Seed, u32),
        nonce: Option<NonceKey>,
        counting: Counting,
    ) -> Result<Generator, TokenizerError> {
        Generator::made(content, (seed, repeat), nonce, Some(counting))
    }

    fn made(
        content: &Content,
        (seed, repeat): (Seed, u32),
        nonce: Option<NonceKey>,
        counting: Option<Counting>,
    ) -> Result<Generator, TokenizerError> {
        let digest = digest(content, seed, repeat);
        let system = (content.system_tokens > 0).then(|| {
            let mut dice = Dice::new(&derived(&digest, b"system"), 0, 0);
            let topic = dice.topic();
            let nonce = nonce.map(|key| Nonce::new(key, Scope::Attempt));
            let wanted = (content.system_tokens, Ending::Rule);
            let (text, tokens) = match &counting {
                Some(counting) => counting.alone(&mut dice, topic, nonce, wanted)?,
                None => write(&mut dice, topic, nonce, wanted),
            };
            Ok(System { text: text.into(), tokens, topic })
        });
        let system = system.transpose()?;
        let conversation = content.reuse == Reuse::Conversation;
        let exact = counting.map(|counting| {
            Exact::new(counting, conversation, system.as_ref().map(|system| (system.text.clone(), system.tokens)))
        });
        let exact = exact.transpose()?;
        let user_key = derived(&digest, b"user");
        let mut generator = Generator { content: content.clone(), digest, user_key, nonce, system, same: None, exact };
        if content.reuse == Reuse::SamePrompt {
            generator.same = Some(generator.user(0, 0));
        }
        Ok(generator)
    }

    /// Request `k` from 0. In a conversation scenario this is the first turn of conversation `k`.
    pub fn request(&self, k: u64) -> Prompt {
        self.turn(k, 0)
    }

    /// What the user says in turn `turn` (from 0) of conversation `conversation`, without the history.
    pub fn turn(&self, conversation: u64, turn: u32) -> Prompt {
        let (user, tokens) = match &self.same {
            Some(same) => same.clone(),
            None => self.user(conversation, turn),
        };
        let system = self.system.as_ref();
        let system_tokens = system.map_or(0, |system| system.tokens);
        let shared = system_tokens + if self.same.is_some() { tokens } else { 0 };
        let is_first = conversation == 0 && turn == 0;
        Prompt {
            system: system.map(|system| system.text.clone()),
            user,
            intended_prompt_tokens: tokens + system_tokens,
            reusable_tokens: if is_first { 0 } else { shared },
            output_tokens: self.lengths(conversation, turn).output_tokens,
        }
    }

    /// How long turn `turn` of item `item` (a request or a conversation, from 0) is to be, history and system message left
    /// out: without making its text.
    pub fn lengths(&self, _item: u64, _turn: u32) -> Lengths {
        let Content { prompt_tokens, output_tokens, .. } = self.content;
        Lengths { prompt_tokens, output_tokens }
    }

    /// Tokens of the system message.
    pub fn system_tokens(&self) -> u32 {
        self.system.as_ref().map_or(0, |system| system.tokens)
    }

    /// Turns of a conversation; 1 in the other scenarios.
    pub fn turns(&self) -> u32 {
        if self.content.reuse == Reuse::Conversation { self.content.turns } else { 1 }
    }

    /// SHA-256 over all that the texts derive from, the nonce left out, as 64 hex digits: equal for runs whose requests
    /// say the same.
    pub fn digest(&self) -> String {
        self.digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The user's text and its tokens.
    fn user(&self, item: u64, turn: u32) -> (String, u32) {
        let mut dice = Dice::new(&self.user_key, item, turn);
        let topic = match &self.system {
            Some(system) => system.topic,
            // All turns of a conversation are about one thing.
            None if turn > 0 => Dice::new(&self.user_key, item, 0).topic(),
            None => dice.topic(),
        };
        let nonce = self.user_scope(item, turn).and_then(|scope| Some(Nonce::new(self.nonce?, scope)));
        let wanted = (self.lengths(item, turn).prompt_tokens, Ending::Question);
        match &self.exact {
            Some(exact) => exact.user(&mut dice, topic, nonce, (wanted.0, turn)),
            None => write(&mut dice, topic, nonce, wanted),
        }
    }

    /// How far the nonce of a user's message reaches; `None` where the message has none.
    fn user_scope(&self, item: u64, turn: u32) -> Option<Scope> {
        match self.content.reuse {
            Reuse::None => Some(Scope::Item(item)),
            Reuse::Conversation => (turn == 0).then_some(Scope::Item(item)),
            Reuse::SamePrompt | Reuse::SharedSystem => self.system.is_none().then_some(Scope::Attempt),
        }
    }
}

/// A text of the wanted number of tokens by the estimate with its nonce in front, and the tokens it really has by it.
pub(super) fn write(
    dice: &mut Dice,
    topic: &'static Topic,
    nonce: Option<Nonce>,
    (tokens, ending): (u32, Ending),
) -> (String, u32) {
    let (length, weight) = nonce::size(nonce);
    let budget = (tokens.saturating_mul(CHARS_PER_TOKEN)).saturating_sub(weight) as usize;
    // One sentence more than wanted is written before the cut.
    let mut out = String::with_capacity(length + budget + 256);
    if let Some(nonce) = nonce {
        nonce.push(&mut out);
    }
    prose::write(&mut out, dice, topic, budget, ending);
    // Prose has one quarter of a token for each character, see `tokens`.
    let weight = weight + (out.len() - length) as u32;
    (out, weight.div_ceil(CHARS_PER_TOKEN))
}

fn digest(content: &Content, Seed(seed): Seed, repeat: u32) -> [u8; 32] {
    let Content { reuse, system_tokens, prompt_tokens, output_tokens, turns } = content;
    let reuse: u8 = match reuse {
        Reuse::SamePrompt => 0,
        Reuse::None => 1,
        Reuse::SharedSystem => 2,
        Reuse::Conversation => 3,
    };
    let mut hash = Sha256::new();
    hash.update(b"sweepline text 1\0");
    hash.update(seed.to_le_bytes());
    hash.update(repeat.to_le_bytes());
    hash.update([reuse]);
    for number in [system_tokens, prompt_tokens, output_tokens, turns] {
        hash.update(number.to_le_bytes());
    }
    hash.finalize().into()
}

fn derived(digest: &[u8; 32], role: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(digest).chain_update(role).finalize().into()
}
