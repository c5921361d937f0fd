//! Compares a server's counts over a run with the client's counts, because others may have used the
//! server.

use crate::analysis::state::State;
use crate::rows::{Counted, Facts, Measured, Sample, TokenSource};

use super::foreign_room::{REQUESTS, TOLERANCE, may_be_answered, room};
use super::foreign_underway;

/// The client's requests, from the first one to the end of the drain.
struct Client {
    /// Number of requests with a complete response.
    answered: f64,
    /// Number of requests without a complete response that the server may nevertheless have completed. It is
    /// unknown which of them the server counts.
    open: f64,
    /// Output tokens of the completed requests; `None` if the server did not report the tokens of some of
    /// these requests.
    tokens: Option<f64>,
    /// Maximum number of output tokens of the open requests together.
    open_tokens: f64,
    /// Number of output tokens of the longest response.
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

/// Compares the server's counts with the client's. Returns no finding if nothing was scraped; an error
/// states why the comparison is not possible.
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
        // If the server also counts failures, it counts each request once, so it cannot count more ended
        // requests than were sent.
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
    // The two requests that the server has not counted yet may be the longest ones. A probe requests one
    // token.
    let room = (tokens * TOLERANCE).max(REQUESTS * longest);
    Ok(match counted {
        _ if counted > tokens + open_tokens + probes + room => {
            text(Side::More, ("output tokens", counted, tokens + open_tokens))
        }
        _ if counted < tokens - room => text(Side::Fewer, ("output tokens", counted, tokens)),
        _ => None,
    })
}

/// Whether the server's count is above or below the client's.
enum Side {
    More,
    Fewer,
}

fn text(side: Side, (what, server, client): (&str, f64, f64)) -> Option<(State, String)> {
    let why = match side {
        Side::More => "something else used it too",
        Side::Fewer => "its pages do not cover all servers that responded, or it was restarted",
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
