//! Requests with several texts: texts to embed, or a query and the documents to score for it. Each is
//! written like a separate prompt of full length, after the same lead and the same nonce.

use super::super::prompt::Prompt;
use super::super::says::Says;
use super::Generator;

impl Generator {
    /// From here on, makes each request contain several texts.
    pub(crate) fn says_several(&mut self, texts: Says) {
        self.says_what = texts;
        if self.same.is_some() {
            self.same = Some(self.user((0, 0), &self.lead(0), None));
        }
    }

    /// Adds to the prompt the further texts of the request, and counts their tokens.
    ///
    /// The model reads each document together with the query, so the query is counted once for each
    /// document.
    pub(super) fn with_more(&self, prompt: Prompt, item: u64) -> Prompt {
        let further = match self.says_what {
            Says::Prompt => return prompt,
            Says::Inputs(count) => count.saturating_sub(1),
            Says::Documents { count, .. } => count,
        };
        let lead = self.lead(item);
        let written = (1..=further).map(|text| match &self.same {
            Some((same, tokens)) if matches!(self.says_what, Says::Inputs(_)) => (same.clone(), *tokens),
            _ => self.user((item, text), &lead, prompt.own_nonce.as_deref()),
        });
        let (more, tokens): (Vec<String>, Vec<u32>) = written.unzip();
        let own = tokens.iter().map(|tokens| tokens.saturating_add(lead.tokens)).fold(0, u32::saturating_add);
        let first = match self.says_what {
            Says::Documents { count, .. } => prompt.intended_prompt_tokens.saturating_mul(count),
            _ => prompt.intended_prompt_tokens,
        };
        Prompt { more, intended_prompt_tokens: first.saturating_add(own), output_tokens: 0, ..prompt }
    }
}
