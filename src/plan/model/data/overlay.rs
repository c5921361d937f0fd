//! Applies a data set to a scenario.

use crate::plan::model::content::{Content, Reuse};
use crate::plan::model::data::corpus::Corpus;

impl Content {
    /// Applies a data set over the existing lengths; all turns of a conversation are sent.
    pub(crate) fn take_data(&mut self, corpus: Corpus) {
        self.turns = if self.reuse == Reuse::Conversation { corpus.most_turns() } else { 1 };
        self.lengths = None;
        self.data = Some(corpus);
    }

    /// Applies the settings of requests that override the data set: turns and requested output tokens.
    pub(crate) fn adjust_data(&mut self, turns: Option<u32>, output: Option<u32>) {
        let Some(corpus) = &mut self.data else { return };
        corpus.output_tokens = output.or(corpus.output_tokens);
        self.turns = turns.unwrap_or(self.turns).min(corpus.most_turns());
        [self.prompt_tokens, self.output_tokens, _] = corpus.most_tokens(self.turns);
    }
}
