//! The content that responses in all forms have in common: the text and the number of tokens.

/// The token counts that a response reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    /// Leading tokens of the prompt that were found in the prefix cache, if they are reported.
    pub(super) cached: Option<u64>,
    pub(super) completion: u32,
    pub(super) reasoning: u32,
}

impl Usage {
    /// Formats it as JSON.
    pub(super) fn json(&self) -> String {
        let Usage { prompt, cached, completion, reasoning } = *self;
        let total = prompt + u64::from(completion);
        let of_prompt = cached
            .map_or_else(String::new, |cached| format!(r#""prompt_tokens_details":{{"cached_tokens":{cached}}},"#));
        format!(
            concat!(
                r#"{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"#,
                r#"{}"completion_tokens_details":{{"reasoning_tokens":{}}}}}"#
            ),
            prompt, completion, total, of_prompt, reasoning
        )
    }
}

/// The text that an event contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Content,
    Reasoning,
}
