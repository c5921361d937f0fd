//! Texts of exact lengths by a model's tokenizer.

use std::sync::Arc;

use crate::plan::Api;

use super::body;
use super::generator;
use super::nonce::Nonce;
use super::prose::{self, Dice, Endless, Ending};
use super::tokenizer::fit::{Fitted, Parts, Whole};
use super::tokenizer::{Tokenizer, TokenizerError};
use super::tokens::CHARS_PER_TOKEN;
use super::words::Topic;

/// By what, and for which API, tokens are counted.
#[derive(Debug, Clone)]
pub struct Counting {
    /// The model's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// Which API is called: a chat has its template around it.
    pub api: Api,
}

/// Makes the user's texts of one run.
#[derive(Clone)]
pub(super) struct Exact {
    counting: Counting,
    conversation: bool,
    /// The system message and its own tokens.
    system: Option<(Arc<str>, u32)>,
    /// Tokens around a user's text: of a whole prompt, and of a text alone.
    frame: i64,
    bare: i64,
}

impl Counting {
    /// A text that has `tokens` tokens when it stands alone, and the tokens it really has.
    pub(super) fn alone(
        &self,
        dice: &mut Dice,
        topic: &'static Topic,
        nonce: Option<Nonce>,
        wanted: (u32, Ending),
    ) -> Result<(String, u32), TokenizerError> {
        let whole = |text: &str| self.tokenizer.bare_tokens(text);
        let frame = self.tokenizer.frame(&whole)?;
        self.fitted(dice, topic, nonce, wanted, (&whole, frame)).map(|Fitted { text, tokens }| (text, tokens))
    }

    fn fitted(
        &self,
        dice: &mut Dice,
        topic: &'static Topic,
        nonce: Option<Nonce>,
        (tokens, ending): (u32, Ending),
        (whole, frame): (Whole, i64),
    ) -> Result<Fitted, TokenizerError> {
        let heads = nonce.map_or_else(Vec::new, Nonce::shorter_and_shorter);
        let own = i64::from(tokens) - frame - self.tokenizer.cost(heads.first().map_or("", String::as_str));
        let characters = u32::try_from(own).unwrap_or(0).saturating_mul(CHARS_PER_TOKEN) as usize;
        let (opening, ending) = prose::ends(dice, topic, characters, ending);
        let mut endless = Endless::new(dice, topic);
        let mut prose = |out: &mut String, length: usize| {
            if out.is_empty() {
                out.push_str(opening);
            }
            endless.more(out, length);
        };
        self.tokenizer.fit(whole, frame, tokens, Parts { heads: &heads, prose: &mut prose, ending })
    }
}

impl Exact {
    /// For prompts with this system message. Fails where the tokenizer or its template does.
    pub fn new(
        counting: Counting,
        conversation: bool,
        system: Option<(Arc<str>, u32)>,
    ) -> Result<Exact, TokenizerError> {
        let bare = counting.tokenizer.frame(&|text| counting.tokenizer.bare_tokens(text))?;
        let mut exact = Exact { counting, conversation, system, frame: 0, bare };
        exact.frame = exact.counting.tokenizer.frame(&|text| exact.whole(text))?;
        Ok(exact)
    }

    /// The user's text of `tokens` tokens, and the tokens that it really has: in the first turn with all that the server
    /// puts around system message and text, in later ones alone.
    ///
    /// A template that takes the sample and not the text, or a text too short for what stands around it, leaves the length
    /// that was found; the rows say it, and the server's own count shows it.
    pub fn user(
        &self,
        dice: &mut Dice,
        topic: &'static Topic,
        nonce: Option<Nonce>,
        (tokens, turn): (u32, u32),
    ) -> (String, u32) {
        let again = dice.clone();
        let system = self.system.as_ref().map_or(0, |(_, tokens)| *tokens);
        let fitted = if turn == 0 {
            let whole = |text: &str| self.whole(text);
            let wanted = (tokens.saturating_add(system), Ending::Question);
            let fitted = self.counting.fitted(dice, topic, nonce, wanted, (&whole, self.frame));
            fitted.map(|Fitted { text, tokens }| (text, tokens.saturating_sub(system)))
        } else {
            let whole = |text: &str| self.counting.tokenizer.bare_tokens(text);
            let fitted = self.counting.fitted(dice, topic, nonce, (tokens, Ending::Question), (&whole, self.bare));
            fitted.map(|Fitted { text, tokens }| (text, tokens))
        };
        fitted.unwrap_or_else(|_| generator::write(&mut { again }, topic, nonce, (tokens, Ending::Question)))
    }

    fn whole(&self, text: &str) -> Result<u32, TokenizerError> {
        let Counting { tokenizer, api } = &self.counting;
        let system = self.system.as_ref().map(|(text, _)| &**text);
        body::tokens(tokenizer, (*api, self.conversation), (system, text))
    }
}
