//! The parts of responses that all APIs have in common: the kinds of text and the token counts.

/// The token counts that a response reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    /// Number of leading tokens of the prompt that were found in the prefix cache; `None` if it is not
    /// reported.
    pub(super) cached: Option<u64>,
    pub(super) completion: u32,
    pub(super) reasoning: u32,
}

impl Usage {
    /// Formats the usage as JSON.
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

/// The kind of text in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Content,
    Reasoning,
}
