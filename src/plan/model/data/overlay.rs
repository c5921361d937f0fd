//! A data set laid over what a scenario sends.

use crate::plan::model::content::{Content, Reuse};
use crate::plan::model::data::corpus::Corpus;

impl Content {
    /// Lays a data set over the lengths that are there; of a conversation all its turns are sent.
    pub(crate) fn take_data(&mut self, corpus: Corpus) {
        self.turns = if self.reuse == Reuse::Conversation { corpus.most_turns() } else { 1 };
        self.lengths = None;
        self.data = Some(corpus);
    }

    /// Lays over a data set what its requests are to have of their own: turns and tokens asked for.
    pub(crate) fn adjust_data(&mut self, turns: Option<u32>, output: Option<u32>) {
        let Some(corpus) = &mut self.data else { return };
        corpus.output_tokens = output.or(corpus.output_tokens);
        self.turns = turns.unwrap_or(self.turns).min(corpus.most_turns());
        [self.prompt_tokens, self.output_tokens, _] = corpus.most_tokens(self.turns);
    }
}
