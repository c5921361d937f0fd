//! Creates prompts whose total length is fitted: the prompts of a trace, and later turns after a history
//! that is known in advance.

use crate::dataset::BLOCK_TOKENS;
use crate::plan::History;

use super::super::exact::Around;
use super::super::exchange::Exchange;
use super::super::nonce::Nonce;
use super::super::prompt::Prompt;
use super::super::prose::Dice;
use super::super::replay::Replayed;
use super::Generator;

impl Generator {
    /// Returns the text of request `k` of a trace, and the number of tokens of the whole prompt,
    /// which is the trace's number if possible; `None` if the model's tokenizer is unknown. A block
    /// has the same tokens wherever it follows the same blocks.
    pub(super) fn fitted_replay(&self, replayed: &Replayed, k: u64, own_nonce: Option<&str>) -> Option<(String, u32)> {
        let exact = self.exact.as_ref()?;
        let request = replayed.request(k);
        let nonce = self.nonce.map(|key| Nonce::new(key, replayed.scope(k)));
        let around = Around { lead: None, lead_tokens: 0, own_nonce, history: &[] };
        let (wanted, mut own) = (request.prompt_tokens, replayed.own(k));
        if request.blocks.is_empty() {
            let topic = own.topic();
            return Some(exact.first(&mut own, topic, nonce, (wanted, around)));
        }
        let blocks = request.blocks.iter().copied();
        exact.pieced((nonce, wanted, around), blocks, BLOCK_TOKENS, &|block| replayed.block(block), own)
    }

    /// Adds the tokens of the history to `prompt`, which is turn `turn` of `item` and was created without
    /// its history. If the history is scripted and the model's tokenizer is known, the turn's text is also
    /// rewritten, so that the whole prompt has exactly the total length of lead, history and turn.
    pub(in super::super) fn behind(
        &self,
        prompt: &mut Prompt,
        (item, turn): (u64, u32),
        (history, history_tokens): (&[Exchange], u32),
    ) {
        let sum = prompt.intended_prompt_tokens.saturating_add(history_tokens);
        let is_scripted = self.content.talk.history == History::Scripted;
        prompt.intended_prompt_tokens = sum;
        let Some(exact) = self.exact.as_ref().filter(|_| is_scripted) else { return };
        let own_nonce = prompt.own_nonce.clone();
        let system = prompt.system.clone();
        let around = Around { lead: system.as_ref(), lead_tokens: 0, own_nonce: own_nonce.as_deref(), history };
        // The text of a data set is sent verbatim, so it cannot be fitted.
        if self.drawn.is_none() {
            let wanted = self.lengths(item, turn).prompt_tokens.saturating_add(self.lead(item).tokens);
            let is_led = turn == 0 && self.lead(item).text.is_some();
            let nonce = self.user_scope(item, turn, is_led).and_then(|scope| Some(Nonce::new(self.nonce?, scope)));
            let mut dice = Dice::new(&self.user_key, item, turn);
            let wanted = wanted.saturating_add(history_tokens);
            if let Some((user, tokens)) = exact.later(&mut dice, self.topic(item), nonce, (wanted, around)) {
                (prompt.user, prompt.intended_prompt_tokens) = (user, tokens);
                return;
            }
        }
        prompt.intended_prompt_tokens = exact.whole(&prompt.user, around).unwrap_or(sum);
    }
}
