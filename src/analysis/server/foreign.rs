//! What a server counted over a run against what the client did: others may have used it.

use crate::analysis::state::State;
use crate::rows::{Counted, Facts, Measured, TokenSource};

/// Two counts that are this near, as a share of the client's, are the same.
const TOLERANCE: f64 = 0.01;
/// Nor are so many requests a difference.
const REQUESTS: f64 = 2.0;

/// What the client did from the first request to the end of drain.
struct Client {
    /// Requests that were answered to the end.
    answered: f64,
    /// Requests that were sent and not answered so: whether the server counts them nobody knows.
    open: f64,
    /// Output tokens of all requests; none where somebody else than the server counted some.
    tokens: Option<f64>,
}

impl Client {
    fn of(rows: &[Measured]) -> Client {
        let answered = rows.iter().filter(|row| row.outcome.is_ok());
        let open = rows.iter().filter(|row| !row.outcome.is_ok() && row.sent_ns().is_some()).count() as f64;
        let counted = |row: &Measured| row.output_tokens().filter(|_| row.token_source == Some(TokenSource::Usage));
        let tokens: Option<f64> = answered.clone().map(|row| counted(row).map(f64::from)).sum();
        Client { answered: answered.count() as f64, open, tokens: tokens.filter(|_| open == 0.0) }
    }
}

/// Holds what the server counted against what the client did. Nothing is found where nothing was scraped; an error says why it cannot be
/// known.
pub(crate) fn judge(rows: &[Measured], facts: &Facts) -> Result<Option<(State, String)>, String> {
    let Some(telemetry) = &facts.telemetry else { return Ok(None) };
    let Counted { requests, generation_tokens, unknown, .. } = &telemetry.counted;
    if let Some(why) = unknown {
        return Err(why.clone());
    }
    let Client { answered, open, tokens } = Client::of(rows);
    let probes = telemetry.probes as f64;
    let room = (answered * TOLERANCE).max(REQUESTS);
    if let Some(found) =
        requests.and_then(|counted| outside(counted, [answered - room, answered + open + probes + room]))
    {
        return Ok(Some(text(found, ("requests", requests.unwrap_or_default(), answered))));
    }
    let of_tokens = generation_tokens.zip(tokens).filter(|(_, tokens)| *tokens > 0.0);
    let Some((counted, tokens)) = of_tokens else {
        return requests.map(|_| None).ok_or_else(|| "the server's pages do not count requests".to_owned());
    };
    // As many as two requests have on average; a probe asks for one.
    let room = (tokens * TOLERANCE).max(REQUESTS * tokens / answered.max(1.0));
    let found = outside(counted, [tokens - room, tokens + probes + room]);
    Ok(found.map(|found| text(found, ("output tokens", counted, tokens))))
}

/// On which side of a range a number is.
fn outside(number: f64, [low, high]: [f64; 2]) -> Option<Side> {
    match number {
        _ if number > high => Some(Side::More),
        _ if number < low => Some(Side::Fewer),
        _ => None,
    }
}

enum Side {
    More,
    Fewer,
}

fn text(side: Side, (what, server, client): (&str, f64, f64)) -> (State, String) {
    let why = match side {
        Side::More => "somebody else used it too",
        Side::Fewer => "its pages are not those of all that answered, or it was restarted",
    };
    let share = (server - client) / client.max(1.0) * 100.0;
    let text =
        format!("the server counted {server:.0} {what} during the run, the client {client:.0} ({share:+.1}%): {why}");
    (State::Suspect, text)
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
mod tests;
