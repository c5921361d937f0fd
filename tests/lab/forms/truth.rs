//! What is true of a form, and what a reader must find.

use super::Form;

/// What a row's number of output tokens must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// As many as there are events with text, each of which is one token.
    Events,
    /// This number.
    Exactly(u32),
    /// One of these numbers. There are several only if servers and their users count differently.
    OneOf(&'static [u32]),
    /// Null, because nobody counted them.
    Null,
    /// Anything.
    Any,
}

/// What a reader must find in one response.
#[derive(Debug, Clone)]
pub struct Truth {
    /// The outcome in rows. There are several only if the right one is a matter of opinion.
    pub outcomes: Vec<&'static str>,
    /// What the text of the error must contain.
    pub error: Vec<&'static str>,
    /// The finish reason; the outer `None` means that it is not checked.
    pub finish: Option<Option<&'static str>>,
    /// The number of output tokens.
    pub output: Output,
    /// Who counted the output tokens; `None` means that it is not checked.
    pub source: Option<&'static str>,
    /// Why there are no figures per token: one of these. If this is empty, there are such figures.
    pub unknown: Vec<&'static str>,
    /// The tokens that were streamed, if they are not all output tokens.
    pub streamed: Option<u32>,
    /// The number of prompt tokens; `None` means that it is not checked.
    pub prompt: Option<u32>,
    /// How many of the prompt tokens were cached; `None` means that it is not checked.
    pub cached: Option<u32>,
    /// The response's text.
    pub content: String,
    /// The response's reasoning.
    pub reasoning: String,
    /// Whether text and reasoning are checked.
    pub has_known_text: bool,
    /// What the tool calls must contain, as they are recorded.
    pub calls: Vec<&'static str>,
    /// Whether the number of events with text is checked.
    pub has_known_events: bool,
    /// The number of events that are valid JSON of an unknown shape; `None` means that it is not checked.
    pub unread: Option<u32>,
}

impl Default for Truth {
    fn default() -> Truth {
        Truth {
            outcomes: vec!["ok"],
            error: Vec::new(),
            finish: None,
            output: Output::Events,
            source: None,
            unknown: Vec::new(),
            streamed: None,
            prompt: None,
            cached: None,
            content: String::new(),
            reasoning: String::new(),
            has_known_text: true,
            calls: Vec::new(),
            has_known_events: true,
            unread: None,
        }
    }
}

impl Truth {
    /// Whether the response is complete.
    pub fn is_ok(&self) -> bool {
        self.outcomes == ["ok"]
    }

    /// Returns how many tokens the events with text consist of, of which there are `events`; `None` if this
    /// is unknown.
    pub fn streamed_tokens(&self, events: u32) -> Option<u32> {
        match self.output {
            _ if !self.unknown.is_empty() => None,
            _ if self.streamed.is_some() => self.streamed,
            Output::Events => Some(events),
            Output::Exactly(tokens) => Some(tokens),
            Output::OneOf(_) | Output::Null | Output::Any => None,
        }
    }
}

impl Form {
    /// States the outcome.
    pub(super) fn outcome(self, outcome: &'static str) -> Form {
        self.one_of(&[outcome])
    }

    /// States the outcomes that are all right.
    pub(super) fn one_of(mut self, outcomes: &[&'static str]) -> Form {
        self.truth.outcomes = outcomes.to_vec();
        self
    }

    /// States what the error says.
    pub(super) fn told(mut self, parts: &[&'static str]) -> Form {
        self.truth.error = parts.to_vec();
        self
    }

    /// States the finish reason.
    pub(super) fn finish_is(mut self, reason: Option<&'static str>) -> Form {
        self.truth.finish = Some(reason);
        self
    }

    /// States the number of output tokens, and who counted them.
    pub(super) fn counted(mut self, tokens: u32, source: &'static str) -> Form {
        (self.truth.output, self.truth.source) = (Output::Exactly(tokens), Some(source));
        self
    }

    /// States that nobody counted the output tokens, and why.
    pub(super) fn unknown(self, reason: &'static str) -> Form {
        self.per_token_unknown(Output::Null, &[reason])
    }

    /// States that there are no figures per token, for one of these reasons.
    pub(super) fn per_token_unknown(mut self, output: Output, reasons: &[&'static str]) -> Form {
        (self.truth.output, self.truth.source) = (output, None);
        self.truth.unknown = reasons.to_vec();
        self
    }

    /// States how many tokens were streamed, where the server counted others as well.
    pub(super) fn streamed(mut self, output: Output, tokens: u32) -> Form {
        (self.truth.output, self.truth.streamed) = (output, Some(tokens));
        self
    }

    /// States the prompt tokens and, unless that is left open, how many of them were cached.
    pub(super) fn prompt(mut self, tokens: u32, cached: Option<u32>) -> Form {
        (self.truth.prompt, self.truth.cached) = (Some(tokens), cached);
        self
    }

    /// States what the tool calls contain.
    pub(super) fn called(mut self, parts: &[&'static str]) -> Form {
        self.truth.calls = parts.to_vec();
        self
    }

    /// States how many events are of an unknown shape.
    pub(super) fn unread(mut self, events: u32) -> Form {
        self.truth.unread = Some(events);
        self
    }

    /// Leaves open how many events with text there are.
    pub(super) fn any_events(mut self) -> Form {
        self.truth.has_known_events = false;
        self
    }

    /// Leaves open what the text is.
    pub(super) fn any_text(mut self) -> Form {
        self.truth.has_known_text = false;
        self
    }
}
