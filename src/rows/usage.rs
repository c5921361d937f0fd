//! Checks a server's token counts for plausibility. If one count is impossible, the whole usage is
//! discarded.

use super::finish::Finish;
use super::request::{Outcome, TokenSource, TokensUnknown};
use super::schema::RequestRow;

/// Maximum number of tokens that a chat template and a server's own instructions may add to a prompt.
const MOST_ADDED: u64 = 65_536;
/// Upper bound on the ratio of actual to intended prompt tokens; no text exceeds it.
const MOST_BYTES: u64 = 16;

/// Upper bound on the number of bytes of text per token, and the number of bytes by which a short text may exceed it.
/// Long words and runs of spaces are single tokens, but texts do not consist of them.
const MOST_TOKEN_BYTES: (u64, u64) = (16, 24);
/// Mean number of bytes of text per event for which events stand for tokens if nothing counts the tokens. Tokens of
/// English have 4 to 5 bytes, words with their space 6, those of JSON 3; two tokens of English have 9, and a letter 1.
const EVENT_BYTES: std::ops::RangeInclusive<f64> = 2.0..=8.0;

/// The counts that a server reported for one response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedCounts {
    /// Number of prompt tokens.
    pub prompt: Option<u32>,
    /// Number of prompt tokens that were taken from the prefix cache.
    pub cached: Option<u32>,
    /// Number of output tokens that were reasoning.
    pub reasoning: Option<u32>,
    /// Number of output tokens, including reasoning.
    pub completion: Option<u32>,
    /// Number of output tokens according to the server's timings (llama.cpp), which may be impossible.
    pub timed: Option<f64>,
    /// Why the counts are impossible by themselves; `None` if they are possible.
    pub doubt: Option<String>,
}

/// The size of the text of a response, by which token counts are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextSize {
    /// Number of bytes of content, reasoning and tool calls.
    pub bytes: usize,
    /// Number of bytes of reasoning.
    pub reasoning_bytes: usize,
    /// Number of bytes of tool calls. Further tokens of a call are syntax that is not part of the response.
    pub call_bytes: usize,
    /// Whether the reasoning was a summary.
    pub is_summarized: bool,
    /// Whether there was a second choice in the stream.
    pub has_other_choice: bool,
}

/// The largest plausible counts.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Maximum plausible number of prompt tokens.
    prompt: u64,
    /// Number of tokens of the response, according to the received data. This may exceed the requested number.
    came: u64,
    /// Number of bytes of text; `None` if it is not known.
    text: Option<u64>,
}

impl Limits {
    /// Returns the limits for a request from its size in bytes, and the number of token events and bytes of
    /// text in its response. Every token has at least one byte.
    fn new(request_bytes: usize, events: u32, text_bytes: u64) -> Limits {
        // In a stream, each event counts as one token. If the response is received as a whole, only the
        // length of its text is known.
        let came = if events > 0 { u64::from(events) } else { text_bytes };
        Limits { prompt: request_bytes as u64 + MOST_ADDED, came, text: Some(text_bytes) }
    }

    /// Returns the limits for a row that was written before usage was checked.
    fn of(row: &RequestRow) -> Limits {
        let prompt = u64::from(row.intended_prompt_tokens) * MOST_BYTES + MOST_ADDED;
        Limits { prompt, came: if row.events > 0 { u64::from(row.events) } else { row.bytes }, text: None }
    }
}

impl RequestRow {
    /// Sets the token counts of a response with this text from what the server reported. `request_bytes` is the size
    /// of the request's body.
    pub fn count_tokens(&mut self, reported: ReportedCounts, text: TextSize, request_bytes: usize) {
        let ReportedCounts { prompt, cached, reasoning, completion, timed, doubt } = reported;
        (self.prompt_tokens, self.cached_tokens, self.reasoning_tokens) = (prompt, cached, reasoning);
        let (mut timings_doubt, mut timed_tokens) = (None, None);
        if let Some(count) = timed.filter(|_| completion.is_none()) {
            if count.fract() == 0.0 && (0.0..f64::from(u32::MAX)).contains(&count) {
                timed_tokens = Some(count as u32);
            } else {
                timings_doubt = Some(format!("{count} predicted tokens"));
            }
        }
        (self.output_tokens, self.token_source) = match (completion, timed_tokens) {
            (Some(tokens), _) => (Some(tokens), Some(TokenSource::Usage)),
            (None, Some(tokens)) => (Some(tokens), Some(TokenSource::Timings)),
            (None, None) => (None, None),
        };
        // A response without any text, such as vectors, only has its total number of bytes.
        let bytes = if text.bytes > 0 { text.bytes as u64 } else { self.bytes };
        if let Some(doubt) =
            doubt.or(timings_doubt).or_else(|| self.doubt(&Limits::new(request_bytes, self.events, bytes)))
        {
            self.disbelieve(doubt);
        } else if self.output_tokens.is_none() && self.events > 0 {
            self.count_by_events(text);
        }
        if self.events > 0 && self.tokens_unknown.is_none() {
            (self.streamed_tokens, self.tokens_unknown) = match self.streamed(text) {
                Ok(tokens) => (Some(tokens), None),
                Err(unknown) => (None, Some(unknown)),
            };
        }
    }

    /// Counts each event as a token, if the events have the size of tokens.
    fn count_by_events(&mut self, text: TextSize) {
        if EVENT_BYTES.contains(&(text.bytes as f64 / f64::from(self.events))) {
            (self.output_tokens, self.token_source) = (Some(self.events), Some(TokenSource::Events));
        } else {
            self.tokens_unknown = Some(TokensUnknown::TokensByEvents);
        }
    }

    /// Sets the number of tokens of the streamed text, as a tokenizer counted them.
    pub fn count_by_tokenizer(&mut self, tokens: u32) {
        let is_possible =
            matches!(self.tokens_unknown, Some(TokensUnknown::TokensByEvents | TokensUnknown::HiddenReasoning));
        if !is_possible {
            return;
        }
        (self.streamed_tokens, self.tokens_unknown) = (Some(tokens), None);
        if self.output_tokens.is_none() {
            (self.output_tokens, self.token_source) = (Some(tokens), Some(TokenSource::Tokenizer));
        }
    }

    /// Returns the number of output tokens whose text was streamed: all of them, or all but the reasoning, if none of
    /// that was streamed.
    fn streamed(&self, text: TextSize) -> Result<u32, TokensUnknown> {
        let all = self.output_tokens.ok_or(TokensUnknown::TokensByEvents)?;
        if text.has_other_choice {
            return Err(TokensUnknown::SeveralChoices);
        }
        let reasoning = self.reasoning_tokens.unwrap_or(0).min(all);
        let content_bytes = text.bytes.saturating_sub(text.reasoning_bytes);
        if reasoning == 0 || fits(reasoning, text.reasoning_bytes) && !text.is_summarized {
            // Reasoning that the server does not count apart shows in tokens that have less than a byte each. One more
            // token is allowed, because some servers count the token that ends the response.
            let has_room = text.call_bytes > 0 || u64::from(all) <= text.bytes as u64 + 1;
            return has_room.then_some(all).ok_or(TokensUnknown::HiddenReasoning);
        }
        let rest = all - reasoning;
        if text.reasoning_bytes == 0 && rest > 0 && (text.call_bytes > 0 || fits(rest, content_bytes)) {
            return Ok(rest);
        }
        Err(TokensUnknown::HiddenReasoning)
    }

    /// Returns why the server's counts are impossible; `None` if they are possible.
    fn doubt(&self, limits: &Limits) -> Option<String> {
        let asked = self.requested_tokens;
        // Hidden reasoning may exceed the requested number. The 1 is added because some servers also count the token
        // that ends the response.
        let most = u64::from(asked).max(limits.came) + u64::from(self.reasoning_tokens.unwrap_or(0)) + 1;
        let is_told = matches!(self.token_source, Some(TokenSource::Usage | TokenSource::Timings));
        let output = self.output_tokens.filter(|_| is_told);
        if output == Some(0) && limits.came > 0 {
            return Some("0 completion tokens for a response with text".to_owned());
        }
        if let Some(output) = output.filter(|output| u64::from(*output) > most) {
            return Some(format!("{output} completion tokens for max_tokens {asked}"));
        }
        let (each, more) = MOST_TOKEN_BYTES;
        if let Some((output, text)) = output.zip(limits.text).filter(|_| self.events > 0)
            && text > u64::from(output) * each + more
        {
            return Some(format!("{output} completion tokens for {text} bytes of text"));
        }
        let prompt = self.prompt_tokens?;
        if u64::from(prompt) > limits.prompt {
            return Some(format!("{prompt} prompt tokens for about {}", self.intended_prompt_tokens));
        }
        let cached = self.cached_tokens.filter(|cached| *cached > prompt)?;
        Some(format!("{cached} cached tokens in a prompt of {prompt}"))
    }

    /// Discards the server's counts and records why.
    fn disbelieve(&mut self, doubt: String) {
        self.usage_doubt = Some(doubt);
        (self.prompt_tokens, self.cached_tokens, self.reasoning_tokens) = (None, None, None);
        if self.token_source != Some(TokenSource::Events) {
            (self.output_tokens, self.token_source, self.streamed_tokens) = (None, None, None);
            self.tokens_unknown = (self.events > 0).then_some(TokensUnknown::ImpossibleUsage);
        }
    }

    /// Returns the row as it would be read today, as far as its columns tell; `None` if nothing differs. This is needed
    /// because older versions wrote counts unchecked, and did not record how many tokens were streamed.
    pub fn believed(&self) -> Option<RequestRow> {
        let doubt = self.doubt(&Limits::of(self));
        let is_old = self.events > 0 && self.streamed_tokens.is_none() && self.tokens_unknown.is_none();
        if doubt.is_none() && !is_old {
            return None;
        }
        let mut row = self.clone();
        if is_old {
            row.judge_again();
        }
        if let Some(doubt) = doubt {
            row.disbelieve(doubt);
        }
        Some(row)
    }

    /// Judges a streamed response that an older version recorded.
    fn judge_again(&mut self) {
        let has_failed = self.finish_reason.as_deref().map(Finish::of) == Some(Finish::Failed);
        if self.outcome.is_ok() && has_failed {
            self.outcome = Outcome::Aborted;
            self.error =
                self.finish_reason.as_ref().map(|reason| format!("the server gave up: finish reason {reason}"));
        }
        let Some(all) = self.output_tokens else { return };
        if self.usage_doubt.is_some() {
            // The events were counted, because the server's counts were impossible.
            (self.output_tokens, self.token_source) = (None, None);
            self.tokens_unknown = Some(TokensUnknown::ImpossibleUsage);
            return;
        }
        // Reasoning that is read together with the first output has the same time, so the number of events counts, too.
        let rest = all.saturating_sub(self.reasoning_tokens.unwrap_or(0));
        let is_hidden = rest < all && self.first_token_ns == self.first_output_ns && self.events <= rest;
        self.streamed_tokens = Some(if is_hidden { rest } else { all });
    }
}

/// Whether a text of `bytes` bytes can have this many tokens.
fn fits(tokens: u32, bytes: usize) -> bool {
    let (each, more) = MOST_TOKEN_BYTES;
    let (tokens, bytes) = (u64::from(tokens), bytes as u64);
    bytes + 1 >= tokens && bytes <= tokens * each + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Phase;

    /// Returns a request for 4 tokens with a prompt of about 50.
    fn row(output: u32, events: u32) -> RequestRow {
        RequestRow {
            requested_tokens: 4,
            intended_prompt_tokens: 50,
            prompt_tokens: Some(52),
            output_tokens: Some(output),
            token_source: Some(TokenSource::Usage),
            streamed_tokens: (events > 0).then_some(output),
            events,
            bytes: 300,
            ..RequestRow::wanted(0, Phase::Measure, 0)
        }
    }

    #[test]
    fn more_than_was_asked_for_and_came() {
        let doubted = |output, events| row(output, events).believed().is_some();
        assert_eq!([0, 1].map(|output| doubted(output, 4)), [true, false]);
        assert!(!doubted(4, 1), "an event of several tokens");
        assert_eq!([5, 6].map(|output| doubted(output, 4)), [false, true], "the token that ends the response");
        assert_eq!([9, 10].map(|output| doubted(output, 8)), [false, true], "a server that ignores max_tokens");
        assert_eq!([301, 302].map(|output| doubted(output, 0)), [false, true], "a complete response of 300 bytes");
        let counted_by_events = RequestRow { token_source: Some(TokenSource::Events), ..row(9, 4) };
        assert_eq!(counted_by_events.believed(), None);
    }

    #[test]
    fn prompts_that_cannot_be() {
        let told = |prompt, cached| RequestRow { prompt_tokens: prompt, cached_tokens: cached, ..row(4, 4) };
        let doubt = |prompt, cached| told(prompt, cached).believed().and_then(|row| row.usage_doubt);
        assert_eq!(doubt(Some(52), Some(52)), None);
        assert_eq!(doubt(Some(52), Some(53)).as_deref(), Some("53 cached tokens in a prompt of 52"));
        assert_eq!(doubt(Some(66_336), None), None);
        assert_eq!(doubt(Some(66_337), None).as_deref(), Some("66337 prompt tokens for about 50"));
        assert_eq!(doubt(None, Some(53)), None);
    }

    #[test]
    fn nothing_of_it_is_believed() {
        let told = RequestRow { reasoning_tokens: Some(1), cached_tokens: Some(0), ..row(2_000_000_000, 4) };
        let believed = told.believed().unwrap();
        assert_eq!(believed.usage_doubt.as_deref(), Some("2000000000 completion tokens for max_tokens 4"));
        assert_eq!((believed.prompt_tokens, believed.cached_tokens, believed.reasoning_tokens), (None, None, None));
        let counts = (believed.output_tokens, believed.token_source, believed.streamed_tokens);
        assert_eq!((counts, believed.tokens_unknown), ((None, None, None), Some(TokensUnknown::ImpossibleUsage)));
        let whole = row(2_000_000_000, 0).believed().unwrap();
        assert_eq!((whole.output_tokens, whole.token_source), (None, None));
        assert_eq!(believed.believed(), None, "it is the same when it is read again");
    }

    /// Returns the counts of a response of `events` events and `text` bytes.
    fn counted(reported: ReportedCounts, events: u32, text: TextSize) -> RequestRow {
        let asked = RequestRow { requested_tokens: 100, intended_prompt_tokens: 30, events, ..row(0, events) };
        let mut row = RequestRow { output_tokens: None, token_source: None, streamed_tokens: None, ..asked };
        row.count_tokens(reported, text, 500);
        row
    }

    fn usage(completion: u32, reasoning: Option<u32>) -> ReportedCounts {
        ReportedCounts { prompt: Some(30), completion: Some(completion), reasoning, ..ReportedCounts::default() }
    }

    fn text(bytes: usize, reasoning_bytes: usize) -> TextSize {
        TextSize { bytes, reasoning_bytes, ..TextSize::default() }
    }

    #[test]
    fn tokens_are_what_was_streamed_and_counted() {
        let streamed = |row: RequestRow| (row.output_tokens, row.streamed_tokens, row.tokens_unknown);
        let hidden = Some(TokensUnknown::HiddenReasoning);
        assert_eq!(streamed(counted(usage(10, None), 10, text(47, 0))), (Some(10), Some(10), None));
        assert_eq!(streamed(counted(usage(64, Some(54)), 10, text(47, 0))), (Some(64), Some(10), None));
        assert_eq!(streamed(counted(usage(64, Some(54)), 64, text(300, 250))), (Some(64), Some(64), None));
        assert_eq!(streamed(counted(usage(64, Some(54)), 14, text(67, 20))), (Some(64), None, hidden), "a summary");
        assert_eq!(streamed(counted(usage(64, None), 10, text(47, 0))), (Some(64), None, hidden), "not reported apart");
        assert_eq!(streamed(counted(usage(10, None), 40, text(47, 0))), (Some(10), Some(10), None), "by characters");
        let choices = TextSize { has_other_choice: true, ..text(47, 0) };
        assert_eq!(
            streamed(counted(usage(20, None), 10, choices)),
            (Some(20), None, Some(TokensUnknown::SeveralChoices))
        );
        let impossible = Some(TokensUnknown::ImpossibleUsage);
        assert_eq!(streamed(counted(usage(1, None), 16, text(75, 0))), (None, None, impossible));
    }

    #[test]
    fn events_stand_for_tokens_only_if_they_have_their_size() {
        let of = |reported, text| counted(reported, 5, text);
        let small = of(ReportedCounts::default(), text(23, 0));
        assert_eq!((small.streamed_tokens, small.token_source), (Some(5), Some(TokenSource::Events)));
        let mut large = of(ReportedCounts::default(), text(120, 0));
        assert_eq!((large.output_tokens, large.tokens_unknown), (None, Some(TokensUnknown::TokensByEvents)));
        let timed = of(ReportedCounts { timed: Some(25.0), ..ReportedCounts::default() }, text(120, 0));
        assert_eq!((timed.streamed_tokens, timed.token_source), (Some(25), Some(TokenSource::Timings)));
        large.count_by_tokenizer(25);
        assert_eq!((large.streamed_tokens, large.token_source), (Some(25), Some(TokenSource::Tokenizer)));
    }

    #[test]
    fn rows_of_older_versions_are_judged_by_their_columns() {
        let old = |finish: &str, reasoning| RequestRow {
            requested_tokens: 100,
            finish_reason: Some(finish.to_owned()),
            outcome: Outcome::Ok,
            reasoning_tokens: reasoning,
            streamed_tokens: None,
            ..row(64, 64)
        };
        let read = |finish, reasoning| old(finish, reasoning).believed().unwrap();
        assert_eq!(read("abort", None).outcome, Outcome::Aborted);
        assert_eq!((read("stop", None).outcome, read("stop", None).streamed_tokens), (Outcome::Ok, Some(64)));
        assert_eq!(read("stop", Some(54)).streamed_tokens, Some(64), "as many events as tokens");
        let few = RequestRow { events: 10, ..old("stop", Some(54)) };
        assert_eq!(few.believed().unwrap().streamed_tokens, Some(10));
        let doubted = RequestRow { usage_doubt: Some("x".to_owned()), ..old("stop", None) };
        assert_eq!(doubted.believed().unwrap().tokens_unknown, Some(TokensUnknown::ImpossibleUsage));
    }
}
