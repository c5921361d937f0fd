//! What a server counted over a run against what the client did: others may have used it.

use crate::analysis::state::State;
use crate::rows::{Counted, Facts, Measured, Sample, TokenSource};

use super::foreign_room::{REQUESTS, TOLERANCE, may_be_answered, room};
use super::foreign_underway;

/// What the client did from the first request to the end of drain.
struct Client {
    /// Requests that were answered to the end.
    answered: f64,
    /// Requests that were not answered so, though the server may have: which of them it counts nobody knows.
    open: f64,
    /// Output tokens of the answered requests; none where somebody else than the server counted some.
    tokens: Option<f64>,
    /// Those that the open ones may have had at most.
    open_tokens: f64,
    /// Those of the longest answer.
    longest: f64,
}

impl Client {
    fn of(rows: &[Measured]) -> Client {
        let answered = rows.iter().filter(|row| row.outcome.is_ok());
        let counted = |row: &Measured| row.output_tokens().filter(|_| row.token_source == Some(TokenSource::Usage));
        let longest = answered.clone().filter_map(counted).max().unwrap_or(0);
        let open = rows.iter().filter(|row| may_be_answered(row));
        Client {
            answered: answered.clone().count() as f64,
            open: open.clone().count() as f64,
            tokens: answered.map(|row| counted(row).map(f64::from)).sum(),
            open_tokens: open.map(|row| f64::from(row.requested_tokens.max(longest))).sum(),
            longest: f64::from(longest),
        }
    }
}

/// Holds what the server counted against what the client did. Nothing is found where nothing was scraped; an error says why it cannot be
/// known.
pub(crate) fn judge(rows: &[Measured], samples: &[Sample], facts: &Facts) -> Result<Option<(State, String)>, String> {
    let Some(telemetry) = &facts.telemetry else { return Ok(None) };
    let Counted { requests, failed, generation_tokens, unknown, .. } = &telemetry.counted;
    if let Some(why) = unknown {
        return Err(why.clone());
    }
    let Client { answered, open, tokens, open_tokens, longest } = Client::of(rows);
    let probes = telemetry.probes as f64;
    let of_requests = room(answered);
    if let Some(requests) = *requests {
        if requests < answered - of_requests {
            return Ok(text(Side::Fewer, ("requests", requests, answered)));
        }
        // Where the server counts what failed it counts each request once, and more cannot have ended than were sent.
        let ended = requests + failed.unwrap_or_default();
        if ended > answered + open + probes + of_requests {
            return Ok(text(Side::More, ("requests", ended, answered + open)));
        }
        if let Some([counted, client]) = foreign_underway::most(rows, samples, facts) {
            return Ok(text(Side::More, ("requests", counted, client)));
        }
    }
    let of_tokens = generation_tokens.zip(tokens).filter(|(_, tokens)| *tokens > 0.0);
    let Some((counted, tokens)) = of_tokens else {
        return requests.map(|_| None).ok_or_else(|| "the server's pages do not count requests".to_owned());
    };
    // The two that it has not counted yet may be the longest; a probe asks for one token.
    let room = (tokens * TOLERANCE).max(REQUESTS * longest);
    Ok(match counted {
        _ if counted > tokens + open_tokens + probes + room => {
            text(Side::More, ("output tokens", counted, tokens + open_tokens))
        }
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
