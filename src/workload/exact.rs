//! Writes texts with an exact number of tokens, as counted by a model's tokenizer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::body;
use super::counting::Counting;
use super::estimated;
use super::exchange::Exchange;
use super::nonce::Nonce;
use super::prompt::Prompt;
use super::prose::{self, Dice, Ending, Endless};
use super::tokenizer::TokenizerError;
use super::tokenizer::draft::{Fitted, Parts, Whole};
use super::tokens::{CHARS_PER_TOKEN, estimate};
use super::vocabulary::Topic;

/// Writes the texts of one run.
#[derive(Clone)]
pub(super) struct Exact {
    counting: Counting,
    conversation: bool,
    /// Number of tokens that are added around a single text (`bare`), around a prompt (`frame`), and around
    /// a prompt with a lead (`lead_frame`). The tokens of the texts themselves are not included.
    bare: i64,
    frame: i64,
    lead_frame: i64,
    /// Number of tokens of the shortest possible prompt, without a lead (`shortest`) and with a lead
    /// (`shortest_led`, which does not include the lead's own tokens).
    shortest: u32,
    shortest_led: u32,
    /// Number of tokens that are added around a text that follows another text.
    behind: i64,
    /// Cache of the pieces of text that prompts share.
    pieces: RefCell<Pieces>,
}

/// Maximum size of the cached pieces, in bytes. When it is exceeded, the cache is cleared, and pieces are
/// written again when needed.
const KEPT_BYTES: usize = 64 << 20;

/// A size-limited cache of pieces, keyed by name and number of tokens.
#[derive(Debug, Clone, Default)]
struct Pieces {
    texts: HashMap<(u64, u32), Arc<str>>,
    bytes: usize,
}

/// Everything in a prompt other than the user's text.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// The system message; `None` without one.
    pub lead: Option<&'a Arc<str>>,
    /// The number of tokens of the system message itself.
    pub(crate) lead_tokens: u32,
    /// A nonce that replaces the prompt's first nonce; `None` if the first nonce is kept.
    pub own_nonce: Option<&'a str>,
    /// The previous turns.
    pub history: &'a [Exchange],
}

impl Exact {
    /// Creates the writer, and measures the tokens that are added around texts. Fails if the tokenizer or
    /// its chat template fails.
    pub(crate) fn new(counting: Counting, conversation: bool) -> Result<Exact, TokenizerError> {
        const LEAD: &str = "Answer in plain words.";
        // The shortest text: if there is no room for more, only a single digit of the nonce remains.
        const LEAST: &str = "0";
        let (bare, frame, lead_frame, behind, shortest, shortest_led) = (0, 0, 0, 0, 0, 0);
        let pieces = RefCell::default();
        let exact = Exact { counting, conversation, bare, frame, lead_frame, shortest, shortest_led, behind, pieces };
        let tokenizer = &exact.counting.tokenizer;
        let bare = tokenizer.frame(&|text| tokenizer.bare_tokens(text))?;
        let behind = tokenizer.frame(&|text| exact.behind(text))?;
        let around = |lead| Around { lead, lead_tokens: 0, own_nonce: None, history: &[] };
        let frame = tokenizer.frame(&|text| exact.whole(text, around(None)))?;
        // An error means that the chat template does not support system messages. The values without a lead
        // are then used, because such a model gets no lead.
        let lead = Arc::from(LEAD);
        let lead_frame = tokenizer.frame(&|text| exact.whole(text, around(Some(&lead))));
        let lead_tokens = tokenizer.bare_tokens(LEAD)?;
        let lead_frame = lead_frame.unwrap_or(frame) - i64::from(lead_tokens);
        let shortest = exact.whole(LEAST, around(None))?;
        let led = exact.whole(LEAST, around(Some(&lead)));
        let shortest_led = led.map_or(shortest, |tokens| tokens.saturating_sub(lead_tokens));
        Ok(Exact { bare, frame, lead_frame, shortest, shortest_led, behind, ..exact })
    }

    /// Returns the number of tokens of the shortest possible prompt: everything around a text, plus one
    /// digit. With a lead, the number does not include the lead's own tokens, and is exact to one token.
    pub(crate) fn shortest(&self, is_led: bool) -> u32 {
        if is_led { self.shortest_led } else { self.shortest }
    }

    /// Writes a single text of the requested number of tokens, with nothing around it. Returns the text and
    /// its actual number of tokens.
    pub(crate) fn alone(
        &self,
        dice: &mut Dice,
        topic: &'static Topic,
        nonce: Option<Nonce>,
        wanted: (u32, Ending),
    ) -> (String, u32) {
        let whole = |text: &str| self.counting.tokenizer.bare_tokens(text);
        self.fitted(dice, topic, nonce, wanted, (&whole, self.bare))
    }

    /// Returns the number of tokens of a single text, or the estimate if the tokenizer rejects the text.
    pub(crate) fn count(&self, text: &str) -> u32 {
        self.counting.tokenizer.bare_tokens(text).unwrap_or_else(|_| estimate(text))
    }

    /// Writes a user's text so that the prompt has `wanted` tokens in addition to those of its lead. The
    /// number includes all text that the server adds around lead and text. Returns the text and the actual
    /// number.
    pub(crate) fn first(
        &self,
        dice: &mut Dice,
        topic: &'static Topic,
        nonce: Option<Nonce>,
        (wanted, around): (u32, Around),
    ) -> (String, u32) {
        let whole = |text: &str| self.whole(text, around);
        let frame = if around.lead.is_some() { self.lead_frame } else { self.frame };
        let wanted = (wanted.saturating_add(around.lead_tokens), Ending::Question);
        let frame = frame + i64::from(around.lead_tokens);
        let (text, tokens) = self.fitted(dice, topic, nonce, wanted, (&whole, frame));
        (text, tokens.saturating_sub(around.lead_tokens))
    }

    /// Writes a user's text that follows a history, so that the whole prompt has `wanted` tokens, including
    /// those of the history and the lead. Returns the text and the actual number of tokens; `None` if there
    /// is no room for a text.
    pub(crate) fn later(
        &self,
        dice: &mut Dice,
        topic: &'static Topic,
        nonce: Option<Nonce>,
        (wanted, around): (u32, Around),
    ) -> Option<(String, u32)> {
        let whole = |text: &str| self.whole(text, around);
        let frame = self.counting.tokenizer.frame(&whole).ok()?;
        let fitted = self.fitted(dice, topic, nonce, (wanted, Ending::Question), (&whole, frame));
        Some(fitted).filter(|(text, _)| !text.is_empty())
    }

    /// Writes a user's text from consecutive pieces, followed by prose from `own`, so that the whole prompt
    /// has `wanted` tokens if possible. Returns the text and the actual number of tokens of the prompt. Each
    /// piece has a name, from which `write` creates its words, and `size` tokens, as counted when it follows
    /// another piece. Equal sequences of pieces have the same tokens, except for the last words of a text.
    pub(crate) fn pieced(
        &self,
        (nonce, wanted, around): (Option<Nonce>, u32, Around),
        pieces: impl Iterator<Item = u64>,
        size: u32,
        write: &dyn Fn(u64) -> Dice,
        mut own: Dice,
    ) -> Option<(String, u32)> {
        let tokenizer = &self.counting.tokenizer;
        let heads = nonce.map_or_else(Vec::new, Nonce::shorter_and_shorter);
        let head = u32::try_from(heads.first().map_or(0, |head| tokenizer.cost(head))).unwrap_or(0);
        // The tokens of the nonce are part of the first piece. All pieces are created before the text,
        // because fitting the text locks the table of words.
        let tokens = |at: usize| size.saturating_sub(if at == 0 { head } else { 0 });
        let most = wanted.div_ceil(size.max(1)) as usize + 1;
        let pieces = pieces.take(most).enumerate().map(|(at, name)| self.piece((name, tokens(at)), write));
        let mut pieces = pieces.collect::<Vec<_>>().into_iter();
        let topic = own.topic();
        let mut endless = Endless::new(&mut own, topic);
        let mut prose = |out: &mut String, length: usize| {
            let end = out.len() + length;
            while out.len() < end {
                let Some(piece) = pieces.next() else { return endless.more(out, end - out.len()) };
                out.push_str(&piece);
                out.push(' ');
            }
        };
        let whole = |text: &str| self.whole(text, around);
        let parts = Parts { heads: &heads, prose: &mut prose, ending: "" };
        tokenizer.fit(&whole, self.frame, wanted, parts).ok().map(|Fitted { text, tokens }| (text, tokens))
    }

    /// Returns the piece named `name`, which has `tokens` tokens when it follows another text.
    fn piece(&self, (name, tokens): (u64, u32), write: &dyn Fn(u64) -> Dice) -> Arc<str> {
        if let Some(known) = self.pieces.borrow().texts.get(&(name, tokens)) {
            return Arc::clone(known);
        }
        let mut dice = write(name);
        let topic = dice.topic();
        let (text, _) =
            self.fitted(&mut dice, topic, None, (tokens, Ending::Nothing), (&|text| self.behind(text), self.behind));
        let text: Arc<str> = text.into();
        let kept = &mut *self.pieces.borrow_mut();
        if kept.bytes + text.len() > KEPT_BYTES {
            *kept = Pieces::default();
        }
        kept.bytes += text.len();
        kept.texts.insert((name, tokens), Arc::clone(&text));
        text
    }

    /// Returns the number of tokens that a text adds when it follows another text.
    fn behind(&self, text: &str) -> Result<u32, TokenizerError> {
        const BEFORE: &str = "note.";
        let tokenizer = &self.counting.tokenizer;
        let both = tokenizer.bare_tokens(&format!("{BEFORE} {text}"))?;
        Ok(both.saturating_sub(tokenizer.bare_tokens(BEFORE)?))
    }

    /// Writes a text that makes the whole prompt `tokens` tokens long. If a chat template or
    /// tokenizer accepted the samples but rejects this text (no real one does), the result is a
    /// text of estimated length; the server's count then shows that the length is wrong.
    fn fitted(
        &self,
        dice: &mut Dice,
        topic: &'static Topic,
        nonce: Option<Nonce>,
        (tokens, ending): (u32, Ending),
        (whole, frame): (Whole, i64),
    ) -> (String, u32) {
        let mut again = dice.clone();
        let tokenizer = &self.counting.tokenizer;
        let heads = nonce.map_or_else(Vec::new, Nonce::shorter_and_shorter);
        let own = i64::from(tokens) - frame - tokenizer.cost(heads.first().map_or("", String::as_str));
        let characters = u32::try_from(own).unwrap_or(0).saturating_mul(CHARS_PER_TOKEN) as usize;
        let (opening, last) = prose::ends(dice, topic, characters, ending);
        let mut endless = Endless::new(dice, topic);
        let mut prose = |out: &mut String, length: usize| {
            if out.is_empty() {
                out.push_str(opening);
            }
            endless.more(out, length);
        };
        let parts = Parts { heads: &heads, prose: &mut prose, ending: last };
        match tokenizer.fit(whole, frame, tokens, parts) {
            Ok(Fitted { text, tokens }) => (text, tokens),
            Err(_) => estimated::write(&mut again, topic, nonce, (tokens, ending)),
        }
    }

    /// Returns the number of tokens of a single text; `None` if the tokenizer rejects it.
    pub(crate) fn bare(&self, text: &str) -> Option<u32> {
        self.counting.tokenizer.bare_tokens(text).ok()
    }

    /// Returns the number of tokens of a whole prompt with this user's text.
    pub(crate) fn whole(&self, text: &str, around: Around) -> Result<u32, TokenizerError> {
        let own_nonce = around.own_nonce.map(str::to_owned);
        let prompt = Prompt { system: around.lead.cloned(), user: text.to_owned(), own_nonce, ..Prompt::default() };
        body::tokens(&self.counting, self.conversation, around.history, &prompt)
    }
}
