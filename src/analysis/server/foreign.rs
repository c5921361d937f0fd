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
    /// Output tokens of all requests; none where somebody else than the server counted some, or requests were not answered to the end.
    tokens: Option<f64>,
    /// Those of the longest answer.
    longest: f64,
}

impl Client {
    fn of(rows: &[Measured]) -> Client {
        let answered = rows.iter().filter(|row| row.outcome.is_ok());
        let open = rows.iter().filter(|row| !row.outcome.is_ok() && row.sent_ns().is_some()).count() as f64;
        let counted = |row: &Measured| row.output_tokens().filter(|_| row.token_source == Some(TokenSource::Usage));
        let tokens: Option<f64> = answered.clone().map(|row| counted(row).map(f64::from)).sum();
        let longest = answered.clone().filter_map(counted).max().map_or(0.0, f64::from);
        Client { answered: answered.count() as f64, open, tokens: tokens.filter(|_| open == 0.0), longest }
    }
}

/// Holds what the server counted against what the client did. Nothing is found where nothing was scraped; an error says why it cannot be
/// known.
pub(crate) fn judge(rows: &[Measured], facts: &Facts) -> Result<Option<(State, String)>, String> {
    let Some(telemetry) = &facts.telemetry else { return Ok(None) };
    let Counted { requests, failed, generation_tokens, unknown, .. } = &telemetry.counted;
    if let Some(why) = unknown {
        return Err(why.clone());
    }
    let Client { answered, open, tokens, longest } = Client::of(rows);
    let probes = telemetry.probes as f64;
    let room = (answered * TOLERANCE).max(REQUESTS);
    if let Some(requests) = *requests {
        if requests < answered - room {
            return Ok(text(Side::Fewer, ("requests", requests, answered)));
        }
        // Where the server counts what failed it counts each request once, and more cannot have ended than were sent.
        let ended = requests + failed.unwrap_or_default();
        if ended > answered + open + probes + room {
            return Ok(text(Side::More, ("requests", ended, answered + open)));
        }
    }
    let of_tokens = generation_tokens.zip(tokens).filter(|(_, tokens)| *tokens > 0.0);
    let Some((counted, tokens)) = of_tokens else {
        return requests.map(|_| None).ok_or_else(|| "the server's pages do not count requests".to_owned());
    };
    // The two that it has not counted yet may be the longest; a probe asks for one token.
    let room = (tokens * TOLERANCE).max(REQUESTS * longest);
    Ok(match counted {
        _ if counted > tokens + probes + room => text(Side::More, ("output tokens", counted, tokens)),
        _ if counted < tokens - room => text(Side::Fewer, ("output tokens", counted, tokens)),
        _ => None,
    })
}

/// On which side of the client's count the server's is.
enum Side {
    More,
    Fewer,
}

fn text(side: Side, (what, server, client): (&str, f64, f64)) -> Option<(State, String)> {
    let why = match side {
        Side::More => "somebody else used it too",
        Side::Fewer => "its pages are not those of all that answered, or it was restarted",
    };
    let share = (server - client) / client.max(1.0) * 100.0;
    let text =
        format!("the server counted {server:.0} {what} during the run, the client {client:.0} ({share:+.1}%): {why}");
    Some((State::Suspect, text))
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "foreign_simulations.rs"]
mod simulations;
