//! What a server's finish reason means for the response that it ends.

/// What a finish reason states about a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The response is complete: the model ended it, or it reached a length or a stop sequence.
    Ended,
    /// A filter or the model's refusal ended the response, which is complete in this form.
    Filtered,
    /// The server gave up, so the response is incomplete.
    Failed,
    /// The reason is not in the tables.
    Unknown,
}

/// Reasons that end a complete response: those of the OpenAI API, of TGI (`eos_token`, `stop_sequence`), of the
/// Messages API (`end_turn`, `tool_use`, …), and of gateways that translate other APIs.
const ENDED: [&str; 17] = [
    "stop",
    "length",
    "tool_calls",
    "function_call",
    "eos",
    "eos_token",
    "stop_sequence",
    "stop_token",
    "end_turn",
    "tool_use",
    "pause_turn",
    "max_tokens",
    "max_output_tokens",
    "model_length",
    "model_context_window_exceeded",
    "completed",
    "repetition",
];

/// Reasons that state that the response was filtered: those of OpenAI and Azure (`content_filter`), the Messages API
/// (`refusal`), Gemini (`SAFETY`, `RECITATION`, …), DashScope and Zhipu (`sensitive`).
const FILTERED: [&str; 8] = [
    "content_filter",
    "refusal",
    "safety",
    "recitation",
    "prohibited_content",
    "blocklist",
    "sensitive",
    "guardrail_intervened",
];

/// Reasons that state that the server gave up: vLLM (`abort`, `error`), SGLang (`abort`), DeepSeek
/// (`insufficient_system_resource`), Zhipu (`network_error`), and the Responses API (`failed`, `cancelled`).
const FAILED: [&str; 10] = [
    "abort",
    "aborted",
    "error",
    "insufficient_system_resource",
    "network_error",
    "failed",
    "cancelled",
    "canceled",
    "timeout",
    "malformed_function_call",
];

impl Finish {
    /// Returns the meaning of a finish reason, which may be in upper or lower case.
    pub fn of(reason: &str) -> Finish {
        let is_in = |table: &[&str]| table.iter().any(|known| known.eq_ignore_ascii_case(reason));
        if is_in(&ENDED) {
            Finish::Ended
        } else if is_in(&FAILED) {
            Finish::Failed
        } else if is_in(&FILTERED) {
            Finish::Filtered
        } else {
            Finish::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_ended_filtered_failed_or_unknown() {
        for (reason, meaning) in [
            ("stop", Finish::Ended),
            ("LENGTH", Finish::Ended),
            ("content_filter", Finish::Filtered),
            ("abort", Finish::Failed),
            ("insufficient_system_resource", Finish::Failed),
            ("solar_flare", Finish::Unknown),
        ] {
            assert_eq!(Finish::of(reason), meaning, "{reason}");
        }
    }
}
