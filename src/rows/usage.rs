//! Checks a server's token counts for plausibility. If one count is impossible, the whole usage is
//! discarded.

use super::request::TokenSource;
use super::schema::RequestRow;

/// Maximum number of tokens that a chat template and a server's own instructions may add to a prompt.
const MOST_ADDED: u64 = 65_536;
/// Upper bound on the ratio of actual to intended prompt tokens; no text exceeds it.
const MOST_BYTES: u64 = 16;

/// The largest plausible counts.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum plausible number of prompt tokens.
    pub prompt: u64,
    /// Number of tokens of the response, according to the received data. This may exceed the requested number.
    pub came: u64,
}

impl Limits {
    /// Returns the limits for a request from its size in bytes, and the number of token events and bytes of
    /// text in its response. Every token has at least one byte.
    pub fn new(request_bytes: usize, events: u32, text_bytes: usize) -> Limits {
        // In a stream, each event counts as one token. If the response is received as a whole, only the
        // length of its text is known.
        let came = if events > 0 { u64::from(events) } else { text_bytes as u64 };
        Limits { prompt: request_bytes as u64 + MOST_ADDED, came }
    }

    /// Returns the limits for a row that was written before usage was checked.
    fn of(row: &RequestRow) -> Limits {
        let prompt = u64::from(row.intended_prompt_tokens) * MOST_BYTES + MOST_ADDED;
        Limits { prompt, came: if row.events > 0 { u64::from(row.events) } else { row.bytes } }
    }
}

impl RequestRow {
    /// Returns why the server's counts are impossible; `None` if they are possible.
    pub fn doubt(&self, limits: &Limits) -> Option<String> {
        let asked = self.requested_tokens;
        // The 1 is added because some servers also count the token that ends the response.
        let most = u64::from(asked).max(limits.came) + 1;
        let output = self.output_tokens.filter(|_| self.token_source == Some(TokenSource::Usage));
        if output == Some(0) && limits.came > 0 {
            return Some("0 completion tokens for a response with text".to_owned());
        }
        if let Some(output) = output.filter(|output| u64::from(*output) > most) {
            return Some(format!("{output} completion tokens for max_tokens {asked}"));
        }
        let prompt = self.prompt_tokens?;
        if u64::from(prompt) > limits.prompt {
            return Some(format!("{prompt} prompt tokens for about {}", self.intended_prompt_tokens));
        }
        let cached = self.cached_tokens.filter(|cached| *cached > prompt)?;
        Some(format!("{cached} cached tokens in a prompt of {prompt}"))
    }

    /// Discards the server's counts and records why.
    pub(crate) fn disbelieve(&mut self, doubt: String) {
        self.usage_doubt = Some(doubt);
        (self.prompt_tokens, self.cached_tokens, self.reasoning_tokens) = (None, None, None);
        if self.token_source == Some(TokenSource::Usage) {
            self.output_tokens = (self.events > 0).then_some(self.events);
            self.token_source = self.output_tokens.map(|_| TokenSource::Events);
        }
    }

    /// Returns the row without its impossible counts; `None` if its counts are possible. This check is
    /// needed because rows of older runs contain unchecked counts.
    pub fn believed(&self) -> Option<RequestRow> {
        let doubt = self.doubt(&Limits::of(self))?;
        let mut row = self.clone();
        row.disbelieve(doubt);
        Some(row)
    }
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
        assert_eq!((believed.output_tokens, believed.token_source), (Some(4), Some(TokenSource::Events)));
        let whole = row(2_000_000_000, 0).believed().unwrap();
        assert_eq!((whole.output_tokens, whole.token_source), (None, None));
        assert_eq!(believed.believed(), None, "it is the same when it is read again");
    }
}
