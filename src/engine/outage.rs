//! Detects an outage of the server from three sources: the outcomes of requests, silence, and checks of the
//! endpoint while the load runs. The detector does no I/O; its input is instants and counts, and its output
//! is a [`Step`].
//!
//! Sporadic errors, timeouts and broken connections are results of a run, because the run measures how good
//! the server is. An outage is different: rows recorded during an outage show nothing about the server
//! under this load. These are the signs of an outage:
//!
//! - *Three responses with 429, three with 404, or three with 401 or 403.* A rate limit, a wrong model or
//!   a wrong key does not occur by chance: a server that responds like this three times will continue to do
//!   so. This conclusion is wrong for a gateway that sheds load with 429; for such a gateway, set `errors:
//!   measured` in the plan. If a command prints the token, the executor ends the attempt at the first 401.
//! - *Five failures in a row (refused or reset connections, 502 or 503) without a success in between,
//!   followed by two checks that do not reach the endpoint.* A server that sheds load still returns its list
//!   of models, or streams responses to the requests that it has accepted. So a token, a completed request or
//!   any other response since the first of the five failures removes the suspicion. While a request that was
//!   in flight before the first failure continues, the server may be working on it and rejecting all others.
//!   In this case, the endpoint must be unreachable for as long as a silence must last before it is a sign of
//!   an outage. This conclusion is wrong if a gateway rejects everything, including its list of models, for
//!   longer than the longest response takes, and then recovers: the attempt is spoiled although the server
//!   was only at its capacity.
//! - *Silence.* Nothing was received for ten seconds with requests in flight, and two checks directly
//!   afterwards get no response within ten seconds each. A single-threaded server responds to nothing else
//!   while it computes, so its longest silence that ended with data serves as the reference: only a silence
//!   of more than twice that time is too long. Without streaming, silence is normal; the reference is then
//!   the longest response, or one minute until the first response has arrived. This conclusion is wrong for
//!   a single-threaded server if the very first prefill of a run takes longer than thirty seconds (eighty
//!   without streaming), or if a later silence exceeds twice the longest silence before it by more than
//!   twenty seconds.
//! - *The server process that sweepline itself started has ended.*

use crate::rows::{Outcome, RequestRow, SpoilCause, Spoiled};
use crate::units::Nanos;
use crate::units::text::counted;

use super::tally::Aside;

/// This many responses with 429, with 404, or with 401 or 403 end the attempt, because they do not occur by
/// chance.
const TURNED_AWAY: u32 = 3;
/// This many failures in a row (refused or reset connections, 502 or 503) are a reason to check the endpoint.
const IN_A_ROW: u32 = 5;
/// Time between the two checks after a series of failures, in nanoseconds. A server that only sheds load
/// completes a request in this time.
const BETWEEN_CHECKS: u64 = 200_000_000;
/// Minimum time between two suspicions caused by series of failures, in nanoseconds, because checks must not
/// add load.
const BETWEEN_SUSPICIONS: u64 = 1_000_000_000;
/// Without streaming, a silence before the first response may last this many times the usual patience.
const UNTIL_FIRST_ANSWER: u64 = 6;

/// What a check of the endpoint includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only whether the endpoint responds at all.
    Presence,
    /// Also whether the endpoint generates a response. This is not checked for a silent server,
    /// which may be working on its requests.
    Generation,
}

/// The result of a check of the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The endpoint responds.
    Well,
    /// The endpoint refuses or resets connections, or reports that it is not available. The text includes
    /// its address.
    Away(String),
    /// The endpoint did not respond in time.
    TimedOut,
}

/// What the executor has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: the run continues.
    GoOn,
    /// Check whether the endpoint is reachable, and report the result.
    Check,
    /// End the attempt.
    End(Spoiled),
}

/// The current state of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// The current time, in nanoseconds since the run's start.
    pub at: u64,
    /// A number that grows with every sign of life: the head of a successful response, or data that was
    /// read after it.
    pub received: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Token events so far. Response heads are not counted, because a gateway may send one for a server
    /// that is down.
    pub tokens: u64,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    /// The number of the request.
    pub request: u64,
    /// How the request ended.
    pub outcome: Outcome,
    /// The text of the failure; empty if the request succeeded.
    pub error: &'a str,
    /// Details of the failure that the request's row does not contain.
    pub aside: Option<Aside>,
    /// Time from the send to the end of the request, in nanoseconds; `None` if it was never sent.
    pub took: Option<u64>,
}

/// Detects an outage in one run.
#[derive(Debug)]
pub(crate) struct Outage {
    url: String,
    patience: u64,
    streams: bool,
    rate_limited: u32,
    unknown: u32,
    unauthorized: u32,
    next_request: u64,
    row: Option<Row>,
    silence: Silence,
    inquiry: Option<Inquiry>,
    /// A series of failures is not a reason to check before this instant, in nanoseconds since the run's
    /// start.
    next_row: u64,
    /// Silence is not a reason to check before this instant, in nanoseconds since the run's start.
    next_silence: u64,
    /// When the run ended, and the number of requests in flight then; `None` before that.
    cut: Option<(u64, u64)>,
}

/// A series of failures without a success in between.
#[derive(Debug)]
struct Row {
    since: u64,
    /// Number of token events that had been received when the series began.
    tokens: u64,
    count: u32,
    /// Requests with a lower number were sent before the series began.
    before: u64,
    /// How many of the requests that were sent before the series are still in flight.
    older: u64,
    /// Whether all failures had the same cause.
    alike: bool,
    cause: SpoilCause,
    error: String,
    retry_after: Option<Nanos>,
}

/// Time without a sign of life while requests are in flight.
#[derive(Debug, Default)]
struct Silence {
    received: u64,
    since: Option<u64>,
    /// The longest silence that ended with data, in nanoseconds.
    longest: u64,
    longest_answer: Option<u64>,
    /// Whether the last request timed out without data, so that the silence continues with the next
    /// request.
    goes_on: bool,
}

/// Detects that the server rejects a run's requests (with 401, 403, 404 or 429), across all processes that
/// share the run's load. `Outage` does this within one process.
#[derive(Debug)]
pub struct TurnedAway(Outage);

impl TurnedAway {
    /// Creates the detector for a run against `url`.
    pub fn new(url: String) -> TurnedAway {
        TurnedAway(Outage::new(url, true, Nanos::ZERO))
    }

    /// Records the end of a request. Returns the reason if this ends the attempt.
    pub fn ended(&mut self, row: &RequestRow) -> Option<Spoiled> {
        if !matches!(row.outcome, Outcome::Http(401 | 403 | 404 | 429)) {
            return None;
        }
        let error = row.error.as_deref().unwrap_or_default();
        let seen = Seen { request: row.request, outcome: row.outcome, error, aside: None, took: None };
        let now = Now { at: row.scheduled_ns, received: 0, in_flight: 0, tokens: 0 };
        match self.0.ended(now, seen, row.request + 1) {
            Step::End(spoiled) => Some(spoiled),
            Step::GoOn | Step::Check => None,
        }
    }
}

/// Returns the reason why an attempt ends whose token the server rejects. A token that expires is the client's, so
/// the first such response ends the attempt, even if the plan measures errors.
pub(crate) fn token_rejected(error: &str) -> Spoiled {
    let detail = format!("HTTP 401: the token has expired, or was revoked{}", said(error));
    Spoiled { cause: SpoilCause::Unauthorized, detail, retry_after: None }
}

/// The state of two successive checks of the endpoint.
#[derive(Debug)]
struct Inquiry {
    about: About,
    /// When the series of failures or the silence began.
    since: u64,
    /// When the second check is due; `None` while a check is in progress.
    next: Option<u64>,
    /// Number of results so far.
    answered: u32,
    timed_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Row,
    Silence,
}

impl Outage {
    /// Creates the detector for a run against `url` with or without streaming, before the first
    /// request.
    pub(crate) fn new(url: String, streams: bool, patience: Nanos) -> Outage {
        Outage {
            url,
            patience: patience.0,
            streams,
            rate_limited: 0,
            unknown: 0,
            unauthorized: 0,
            next_request: 0,
            row: None,
            silence: Silence::default(),
            inquiry: None,
            next_row: 0,
            next_silence: 0,
            cut: None,
        }
    }

    /// Returns the interval at which the executor must call `look`, in nanoseconds.
    pub(crate) fn every(&self) -> u64 {
        (self.patience / 10).clamp(1_000_000, 250_000_000)
    }

    /// Records that a request has ended and no longer counts as in flight; `next_request` is the next
    /// unused request number.
    pub(crate) fn ended(&mut self, now: Now, seen: Seen<'_>, next_request: u64) -> Step {
        self.next_request = next_request;
        self.silence.goes_on = matches!(
            (seen.outcome, seen.aside),
            (Outcome::Connect, Some(Aside::Late)) | (Outcome::Timeout | Outcome::Stalled, _)
        );
        self.hear(now);
        if let Some(row) = &mut self.row
            && seen.request < row.before
        {
            row.older = row.older.saturating_sub(1);
        }
        match (seen.outcome, seen.aside) {
            (Outcome::Ok, _) => {
                self.row = None;
                self.silence.longest_answer = self.silence.longest_answer.max(seen.took);
            }
            (Outcome::Http(429), _) => return self.turned_away(now, seen, SpoilCause::RateLimited),
            (Outcome::Http(404), _) => return self.turned_away(now, seen, SpoilCause::UnknownModel),
            (Outcome::Http(401 | 403), _) => return self.turned_away(now, seen, SpoilCause::Unauthorized),
            (Outcome::ServerDied, _) => return Step::End(server_died()),
            // Failures caused by this machine's own limits, and connections that did not open in time, do
            // not show whether the server is reachable.
            (Outcome::Connect, Some(Aside::Local | Aside::Late)) => {}
            (Outcome::Timeout | Outcome::Stalled | Outcome::CutAtDrain, _) => {}
            (Outcome::Connect, _) => return self.failed(now, seen, SpoilCause::Refused),
            (Outcome::Reset, _) => return self.failed(now, seen, SpoilCause::Reset),
            (Outcome::Http(502), _) => return self.failed(now, seen, SpoilCause::BadGateway),
            (Outcome::Http(503), _) => return self.failed(now, seen, SpoilCause::Unavailable),
            // Whatever the server responded, it is reachable.
            (
                Outcome::Http(_)
                | Outcome::Malformed
                | Outcome::StreamError
                | Outcome::Empty
                | Outcome::Aborted
                | Outcome::NotStreamed,
                _,
            ) => {
                self.row = None;
                self.silence.broken(now);
            }
        }
        Step::GoOn
    }

    /// Checks, as time passes, whether an endpoint check is due or a sign of an outage has lasted long
    /// enough.
    pub(crate) fn look(&mut self, now: Now) -> Step {
        self.hear(now);
        if let Some(inquiry) = &mut self.inquiry {
            return match inquiry.next.take_if(|next| *next <= now.at) {
                Some(_) => Step::Check,
                None => Step::GoOn,
            };
        }
        if now.at >= self.next_row
            && let Some(row) = self.row.as_ref().filter(|row| row.count >= self.needed() && row.tokens == now.tokens)
        {
            return self.ask(About::Row, row.since);
        }
        if now.at >= self.next_silence
            && let Some(since) = self.silence.since
            && self.until(now).saturating_sub(since) >= self.longest_silence()
        {
            return self.ask(About::Silence, since);
        }
        Step::GoOn
    }

    /// Decides whether to check the endpoint at the end of the run, when the requests in flight (see `now`)
    /// are cancelled.
    pub(crate) fn at_the_end(&mut self, now: Now) -> Step {
        self.cut = Some((now.at, now.in_flight));
        self.next_row = 0;
        self.look(now)
    }

    /// Whether the result of a check is pending or another check will follow.
    pub(crate) fn asks(&self) -> bool {
        self.inquiry.is_some()
    }

    /// Handles the result of a check of the endpoint.
    pub(crate) fn answered(&mut self, now: Now, checked: Checked) -> Step {
        self.hear(now);
        let Some(mut inquiry) = self.inquiry.take() else { return Step::GoOn };
        inquiry.answered += 1;
        inquiry.timed_out |= checked == Checked::TimedOut;
        match inquiry.about {
            About::Row => self.answered_row(now, inquiry, checked),
            About::Silence => self.answered_silence(now, inquiry, checked),
        }
    }

    fn answered_row(&mut self, now: Now, inquiry: Inquiry, checked: Checked) -> Step {
        self.next_row = now.at.saturating_add(BETWEEN_SUSPICIONS);
        let away = checked != Checked::Well;
        let row = self.row.take_if(|row| away && row.since == inquiry.since && row.tokens == now.tokens);
        let Some(row) = row else {
            // A request succeeded or the endpoint responded, so the failures are results, and the count
            // restarts.
            self.row = None;
            return Step::GoOn;
        };
        if inquiry.answered < 2 {
            // Requests that are in flight now and are still in flight when the second check ends were
            // accepted, not rejected.
            let older = self.cut.map_or(now.in_flight, |_| row.older);
            self.row = Some(Row { before: self.next_request, older, ..row });
            self.inquiry = Some(Inquiry { next: Some(now.at.saturating_add(BETWEEN_CHECKS)), ..inquiry });
            return Step::GoOn;
        }
        let at_once = row.older == 0 && !inquiry.timed_out;
        if at_once || self.until(now) - row.since >= self.longest_silence() {
            return Step::End(row.spoiled(&self.url, checked));
        }
        // The server may be working on requests that it accepted earlier, so check it again later.
        self.row = Some(row);
        Step::GoOn
    }

    fn answered_silence(&mut self, now: Now, inquiry: Inquiry, checked: Checked) -> Step {
        self.next_silence = now.at.saturating_add(self.longest_silence());
        if checked == Checked::Well || self.silence.since != Some(inquiry.since) {
            return Step::GoOn;
        }
        if inquiry.answered < 2 {
            // A quick refusal may only mean that the server is restarting.
            let is_away = checked != Checked::TimedOut;
            let next = is_away.then(|| now.at.saturating_add(BETWEEN_CHECKS));
            self.inquiry = Some(Inquiry { next, ..inquiry });
            return if is_away { Step::GoOn } else { Step::Check };
        }
        let Outage { url, patience, .. } = self;
        // Rounded to a tenth of a second for readability.
        let (silent, within) = (Nanos((now.at - inquiry.since) / 100_000_000 * 100_000_000), Nanos(*patience));
        let in_flight = self.cut.map_or(now.in_flight, |(_, in_flight)| in_flight);
        let many = counted(in_flight, "request");
        let check = match checked {
            Checked::Away(words) => words,
            Checked::Well | Checked::TimedOut => format!("{url} did not respond to a check within {within}, twice"),
        };
        let detail = format!("nothing was received for {silent} with {many} in flight, and {check}");
        Step::End(Spoiled { cause: SpoilCause::Silent, detail, retry_after: None })
    }

    /// Returns how many failures in a row are a reason to check the endpoint: only one at the end of a run,
    /// because no further failures can follow.
    fn needed(&self) -> u32 {
        if self.cut.is_some() { 1 } else { IN_A_ROW }
    }

    /// Returns the end of the period over which a silence is measured: now, or the end of the run, after
    /// which nothing can be received.
    fn until(&self, now: Now) -> u64 {
        self.cut.map_or(now.at, |(at, _)| at)
    }

    /// Returns how long silence may last before it is a reason to check the endpoint, in nanoseconds.
    fn longest_silence(&self) -> u64 {
        let Silence { longest, longest_answer, .. } = self.silence;
        let least = match (self.streams, longest_answer) {
            (false, None) => self.patience.saturating_mul(UNTIL_FIRST_ANSWER),
            (false, Some(answer)) => self.patience.max(answer.saturating_mul(2)),
            (true, _) => self.patience,
        };
        least.max(longest.saturating_mul(2))
    }

    fn ask(&mut self, about: About, since: u64) -> Step {
        self.inquiry = Some(Inquiry { about, since, next: None, answered: 0, timed_out: false });
        Step::Check
    }

    /// Whether so many requests have failed in a row, without a success in between, that the server may be
    /// unreachable.
    pub(crate) fn suspects_a_row(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.count >= IN_A_ROW)
    }

    /// Returns what the next check of the endpoint includes.
    pub(crate) fn depth(&self) -> Depth {
        let about = self.inquiry.as_ref().map(|inquiry| inquiry.about);
        // A server at its capacity works on the requests that it has accepted, and would reject the check's
        // generation like any other request.
        let is_idle = self.row.as_ref().is_some_and(|row| row.older == 0);
        if about == Some(About::Row) && is_idle { Depth::Generation } else { Depth::Presence }
    }

    /// Updates the current silence, depending on whether data has been received since the last call.
    fn hear(&mut self, now: Now) {
        let silence = &mut self.silence;
        if now.received != silence.received {
            if let Some(since) = silence.since {
                silence.longest = silence.longest.max(now.at.saturating_sub(since));
            }
            silence.received = now.received;
            silence.broken(now);
        }
        match self.cut.map_or(now.in_flight, |(_, in_flight)| in_flight) {
            0 if silence.goes_on => {}
            0 => silence.since = None,
            _ => drop(silence.since.get_or_insert(now.at)),
        }
    }

    /// Handles a response that reports a rate limit, an unknown model or missing authorization.
    fn turned_away(&mut self, now: Now, seen: Seen<'_>, cause: SpoilCause) -> Step {
        self.row = None;
        self.silence.broken(now);
        let count = match cause {
            SpoilCause::RateLimited => &mut self.rate_limited,
            SpoilCause::Unauthorized => &mut self.unauthorized,
            _ => &mut self.unknown,
        };
        *count += 1;
        if *count < TURNED_AWAY {
            return Step::GoOn;
        }
        let status =
            if let Outcome::Http(status) = seen.outcome { status.to_string() } else { cause.short().to_owned() };
        let detail = format!("HTTP {status} three times{}", said(seen.error));
        Step::End(Spoiled { cause, detail, retry_after: retry_after(seen.aside) })
    }

    /// Handles a failure of a kind that an outage causes.
    fn failed(&mut self, now: Now, seen: Seen<'_>, cause: SpoilCause) -> Step {
        self.silence.broken(now);
        let retry_after = retry_after(seen.aside);
        match self.row.as_mut().filter(|row| row.tokens == now.tokens) {
            Some(row) => {
                row.count = row.count.saturating_add(1);
                row.alike &= row.cause == cause;
                row.retry_after = retry_after.or(row.retry_after);
                (row.cause, row.error) = (cause, seen.error.to_owned());
            }
            None => {
                self.row = Some(Row {
                    since: now.at,
                    tokens: now.tokens,
                    count: 1,
                    before: self.next_request,
                    older: now.in_flight,
                    alike: true,
                    cause,
                    error: seen.error.to_owned(),
                    retry_after,
                });
            }
        }
        self.look(now)
    }
}

impl Silence {
    /// Ends the current silence after data, a response, or a refused or reset connection. If requests are in
    /// flight, a new silence begins now.
    fn broken(&mut self, now: Now) {
        self.since = (now.in_flight > 0).then_some(now.at);
    }
}

impl Row {
    fn spoiled(self, url: &str, checked: Checked) -> Spoiled {
        let Row { cause, alike, error, retry_after, count, .. } = self;
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times in a row") };
        let check = match checked {
            Checked::Away(words) => words,
            Checked::Well | Checked::TimedOut => format!("{url} does not respond to a check in time"),
        };
        let what = match cause {
            _ if !alike => {
                format!("{count} requests in a row were refused, reset or failed with 502 or 503; the last: {error}")
            }
            SpoilCause::Unavailable | SpoilCause::BadGateway => format!("HTTP {cause} {times}{}", said(&error)),
            SpoilCause::Refused if !error.to_lowercase().contains("refused") => {
                format!("no connection {times}{}", said(&error))
            }
            cause => format!("{cause} {times}"),
        };
        Spoiled { cause, detail: format!("{what}, and {check}"), retry_after }
    }
}

/// Returns the reason why an attempt is spoiled if the server process that sweepline started has ended.
pub fn server_died() -> Spoiled {
    let detail = "the server process ended during the run".to_owned();
    Spoiled { cause: SpoilCause::ServerDied, detail, retry_after: None }
}

fn said(words: &str) -> String {
    if words.trim().is_empty() { String::new() } else { format!(": {}", words.trim()) }
}

fn retry_after(aside: Option<Aside>) -> Option<Nanos> {
    match aside {
        Some(Aside::RetryAfter(wait)) => Some(wait),
        Some(Aside::Local | Aside::Late) | None => None,
    }
}

#[cfg(test)]
#[path = "outage_tests.rs"]
mod tests;
