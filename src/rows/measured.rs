//! A compact form of a request for analysis. It takes a third of the memory of a row, so a run with
//! millions of requests fits into memory while its verdict is computed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::request::{Outcome, Stamp, TokenSource, TokensUnknown};
use super::schema::RequestRow;
use super::server_times::ServerTimes;

/// An optional number that needs no extra memory, because the largest value of its type means `None`.
/// Stored 64-bit numbers never reach that value, but a count of 4 294 967 295 tokens would be read as
/// `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Maybe<T>(T);

macro_rules! maybe {
    ($($type:ty),+) => {$(
        impl From<Option<$type>> for Maybe<$type> {
            fn from(value: Option<$type>) -> Self {
                Maybe(value.unwrap_or(<$type>::MAX))
            }
        }

        impl Maybe<$type> {
            fn get(self) -> Option<$type> {
                (self.0 != <$type>::MAX).then_some(self.0)
            }
        }
    )+};
}

maybe!(u64, u32, u16);

/// The fields of one request that metrics and verdicts need. The fields have the same names and meanings as
/// in [`RequestRow`].
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Number of the request in its run, from 0.
    pub request: u64,
    /// Time at which the request was due according to the load pattern, in nanoseconds since the run's
    /// start.
    pub scheduled_ns: u64,
    released_ns: Maybe<u64>,
    sent_ns: Maybe<u64>,
    first_token_ns: Maybe<u64>,
    first_output_ns: Maybe<u64>,
    last_token_ns: Maybe<u64>,
    done_ns: Maybe<u64>,
    ended_ns: Maybe<u64>,
    connecting_ns: Maybe<u64>,
    read_delay_ns: Maybe<u64>,
    content_wait_ns: Maybe<u64>,
    prompt_tokens: Maybe<u32>,
    cached_tokens: Maybe<u32>,
    output_tokens: Maybe<u32>,
    streamed_tokens: Maybe<u32>,
    unread_events: Maybe<u16>,
    reusable_tokens: Maybe<u32>,
    turn: Maybe<u32>,
    /// Number of requested output tokens.
    pub requested_tokens: u32,
    /// Intended number of prompt tokens.
    pub intended_prompt_tokens: u32,
    /// Number of token events.
    pub events: u32,
    /// The outcome of the request.
    pub outcome: Outcome,
    class: Maybe<u16>,
    /// Why the number of streamed tokens is not known.
    pub tokens_unknown: Option<TokensUnknown>,
    /// Source of the receive timestamps.
    pub stamp: Stamp,
    /// Source of the output token count.
    pub token_source: Option<TokenSource>,
    /// Whether response headers arrived.
    pub answered: bool,
    /// The texts of the request; `None` if it has none.
    texts: Option<Arc<Texts>>,
    /// The server's own times; `None` for most servers, because they report no times.
    server_times: Option<Box<ServerTimes>>,
}

/// The texts of a request, which many requests share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Texts {
    /// The error of a failed request, or the reason why the usage of a completed request is implausible. A request has
    /// at most one of these.
    words: Option<String>,
    /// The server's reason for ending the response.
    finish_reason: Option<String>,
}

macro_rules! optional {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+) => {
        impl Measured {
            $(
                $(#[doc = $doc])+
                pub fn $field(&self) -> Option<$type> {
                    self.$field.get()
                }
            )+
        }
    };
}

optional! {
    /// Time at which the in-flight cap released the request.
    released_ns: u64,
    /// Time just before the write call that carries the request.
    sent_ns: u64,
    /// Time of the first event with text.
    first_token_ns: u64,
    /// Time of the first event with content or a tool call.
    first_output_ns: u64,
    /// Time of the last event with text.
    last_token_ns: u64,
    /// Time of the end of the stream.
    done_ns: u64,
    /// Time at which the request ended, with any outcome.
    ended_ns: u64,
    /// Total DNS, TCP and TLS time of a connection opened for this request.
    connecting_ns: u64,
    /// Time at which we read the first token minus the kernel's timestamp for the token.
    read_delay_ns: u64,
    /// Part of the request's lateness that was spent waiting for its content.
    content_wait_ns: u64,
    /// Number of prompt tokens, as counted by the server.
    prompt_tokens: u32,
    /// Number of prompt tokens that the server took from its prefix cache.
    cached_tokens: u32,
    /// Number of output tokens, including reasoning that was not streamed.
    output_tokens: u32,
    /// Number of output tokens whose text was streamed.
    streamed_tokens: u32,
    /// Number of events of an unknown shape, at most 65 534.
    unread_events: u16,
    /// Number of leading prompt tokens shared with an earlier request, if known.
    reusable_tokens: u32,
    /// Turn of the conversation, from 0.
    turn: u32,
    /// Index of the request's class in the run's list of classes.
    class: u16,
}

impl Measured {
    /// Marks the shared prompt tokens of this request as unknown.
    pub(super) fn forget_reuse(&mut self) {
        self.reusable_tokens = None.into();
    }

    /// Returns the error of a failed request, as text.
    pub fn error(&self) -> Option<&str> {
        self.words().filter(|_| !self.outcome.is_ok())
    }

    /// Returns why the server's counts for a completed request are implausible; `None` if they are
    /// plausible.
    pub fn usage_doubt(&self) -> Option<&str> {
        self.words().filter(|_| self.outcome.is_ok())
    }

    /// Returns the server's reason for ending the response; `None` if it stated none.
    pub fn finish_reason(&self) -> Option<&str> {
        self.texts.as_deref()?.finish_reason.as_deref()
    }

    fn words(&self) -> Option<&str> {
        self.texts.as_deref()?.words.as_deref()
    }

    /// Returns the server's own times for this request.
    pub fn server_times(&self) -> ServerTimes {
        self.server_times.as_deref().copied().unwrap_or_default()
    }
}

/// Converts rows to [`Measured`], and stores a text that many rows share only once.
#[derive(Debug, Default)]
pub(super) struct Condenser {
    places: HashMap<String, u16>,
    /// Names of the classes, in order of appearance.
    pub classes: Vec<String>,
    texts: HashSet<Arc<Texts>>,
}

impl Condenser {
    /// Returns the index of a class, and adds the class if it is new. A run never has more classes than a
    /// `u16` can count.
    fn class(&mut self, name: &str) -> Option<u16> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        let place = u16::try_from(self.classes.len()).ok()?;
        self.classes.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        Some(place)
    }

    fn texts(&mut self, texts: Texts) -> Option<Arc<Texts>> {
        if texts == Texts::default() {
            return None;
        }
        if let Some(known) = self.texts.get(&texts) {
            return Some(Arc::clone(known));
        }
        let texts = Arc::new(texts);
        self.texts.insert(Arc::clone(&texts));
        Some(texts)
    }

    /// Converts one row.
    pub(crate) fn take(&mut self, row: &RequestRow) -> Measured {
        let class = row.class.as_deref().and_then(|name| self.class(name)).into();
        let believed = row.believed();
        let row = believed.as_ref().unwrap_or(row);
        let words = if row.outcome.is_ok() { &row.usage_doubt } else { &row.error };
        let texts = self.texts(Texts { words: words.clone(), finish_reason: row.finish_reason.clone() });
        Measured { class, texts, ..Measured::of(row) }
    }
}

impl From<&RequestRow> for Measured {
    /// Converts a single row, without its class and its texts.
    fn from(row: &RequestRow) -> Measured {
        Measured::of(row.believed().as_ref().unwrap_or(row))
    }
}

impl Measured {
    /// Converts a row whose counts are plausible, without its class and its texts.
    fn of(row: &RequestRow) -> Measured {
        Measured {
            request: row.request,
            scheduled_ns: row.scheduled_ns,
            released_ns: row.released_ns.into(),
            sent_ns: row.sent_ns.into(),
            first_token_ns: row.first_token_ns.into(),
            first_output_ns: row.first_output_ns.into(),
            last_token_ns: row.last_token_ns.into(),
            done_ns: row.done_ns.into(),
            ended_ns: row.ended_ns.into(),
            connecting_ns: together([row.dns_ns, row.connect_ns, row.tls_ns]).into(),
            read_delay_ns: row.read_delay_ns.into(),
            content_wait_ns: row.content_wait_ns.into(),
            prompt_tokens: row.prompt_tokens.into(),
            cached_tokens: row.cached_tokens.into(),
            output_tokens: row.output_tokens.into(),
            streamed_tokens: row.streamed_tokens.into(),
            unread_events: row.unread_events.map(|events| events.min(65_534) as u16).into(),
            reusable_tokens: row.reusable_tokens.into(),
            turn: row.turn.into(),
            requested_tokens: row.requested_tokens,
            intended_prompt_tokens: row.intended_prompt_tokens,
            events: row.events,
            outcome: row.outcome,
            class: None.into(),
            tokens_unknown: row.tokens_unknown,
            stamp: row.stamp,
            token_source: row.token_source,
            answered: row.headers_ns.is_some(),
            texts: None,
            server_times: Some(row.server_times()).filter(|times| !times.is_empty()).map(Box::new),
        }
    }
}

/// Columns that [`Measured`] does not need. They are not read from the file; all of them are nullable, so
/// their values are null.
pub(super) const UNUSED: [&str; 6] =
    ["conversation", "first_chunk_ns", "connection", "http_status", "trace_id", "text_digest"];

/// Returns the sum of the known parts; `None` if no part is known.
fn together(parts: [Option<u64>; 3]) -> Option<u64> {
    parts.into_iter().flatten().reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Phase, Table};

    #[test]
    fn a_million_requests_take_160_megabytes_at_most() {
        assert!(size_of::<Measured>() <= 160, "{}", size_of::<Measured>());
        assert!(size_of::<RequestRow>() > 400, "the savings no longer justify a separate type");
    }

    #[test]
    fn what_is_not_read_may_be_null() {
        let columns: Vec<_> = Table::Requests.columns().filter(|column| UNUSED.contains(&column.name)).collect();
        assert!(columns.len() == UNUSED.len() && columns.iter().all(|column| column.nullable));
    }

    #[test]
    fn texts_are_kept_once() {
        let row = |class: &str| RequestRow {
            class: Some(class.to_owned()),
            error: Some("refused".to_owned()),
            dns_ns: Some(1),
            tls_ns: Some(2),
            ..RequestRow::wanted(7, Phase::Measure, 0)
        };
        let mut condenser = Condenser::default();
        let taken: Vec<Measured> = ["b", "a", "b"].map(|class| condenser.take(&row(class))).into();
        assert_eq!(taken.iter().map(Measured::class).collect::<Vec<_>>(), [Some(0), Some(1), Some(0)]);
        assert_eq!((condenser.classes, condenser.texts.len()), (vec!["b".to_owned(), "a".to_owned()], 1));
        assert_eq!((taken[1].error(), taken[1].connecting_ns(), taken[1].sent_ns()), (Some("refused"), Some(3), None));
    }
}
