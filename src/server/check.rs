//! Checks whether a server is reachable. The check may run while the server is under load, so it sends as
//! few requests as possible.

use std::time::Duration;

use http::StatusCode;

use crate::network::{Client, Request};
use crate::units::{Nanos, patience};

use super::probe::{Question, client, generation};

/// The result of checking whether a server is reachable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// The server responds.
    Here,
    /// The server does not respond, or reports that it is not available. The text contains the reason and
    /// the server's address.
    Away(String),
    /// The server did not respond within the time limit.
    TimedOut,
}

/// Checks whether a server is reachable by requesting its readiness path or, if it has none, its list of
/// models. Blocks for at most ten seconds.
///
/// A server that rejects the API key or has no list of models is reachable, because it responds. A server
/// that returns a 5xx status is also reachable, except for 502, 503 and 504, which gateways return for a
/// server that they cannot reach. If `generates` is set, one token is then requested as well, because a
/// gateway may return its list of models even if no server is behind it.
pub fn check(question: &Question, generates: bool) -> Presence {
    let within = patience();
    let question = &Question { connect: within, within, ..question.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // If this machine cannot send requests, the server may still be reachable.
    let Ok(runtime) = runtime else { return Presence::Here };
    runtime.block_on(async {
        // The client limits the times for connecting and for the response separately; this timeout limits
        // their sum.
        tokio::time::timeout(Duration::from(within), ask(question, generates)).await.unwrap_or(Presence::TimedOut)
    })
}

/// Whether a server reports that it is ready: its readiness path or, if it has none, its list of models
/// returns a 2xx status. Blocks for at most two seconds.
pub fn is_ready(question: &Question) -> bool {
    const WITHIN: Nanos = Nanos::from_secs(2);
    let question = &Question { connect: WITHIN, within: WITHIN, ..question.clone() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return false };
    runtime.block_on(async {
        let Ok(client) = client(question) else { return false };
        let response = client.send(question.signed(Request::get(question.ready_path()))).await;
        response.is_ok_and(|response| response.status().is_success())
    })
}

async fn ask(question: &Question, generates: bool) -> Presence {
    let Ok(client) = client(question) else { return Presence::Here };
    let listed = answer(&client, Request::get(question.ready_path()), question, &GONE).await;
    if !generates || listed != Presence::Here {
        return listed;
    }
    let gone = [&GONE[..], &[StatusCode::TOO_MANY_REQUESTS]].concat();
    answer(&client, generation(question, 1), question, &gone).await
}

/// HTTP statuses that a gateway returns if its server is not reachable, or a server if it is unavailable.
const GONE: [StatusCode; 3] = [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];

/// Sends one request. A response with one of the statuses in `away` means that the server is not reachable.
async fn answer(client: &Client, request: Request, question: &Question, away: &[StatusCode]) -> Presence {
    let url = question.shown();
    match client.send(question.signed(request)).await {
        Ok(response) if away.contains(&response.status()) => {
            Presence::Away(format!("{url} returns HTTP {}", response.status().as_u16()))
        }
        Ok(_) => Presence::Here,
        Err(error) if error.is_timeout() => Presence::TimedOut,
        Err(error) => Presence::Away(format!("{url} does not respond: {}", question.presentable(&error.words()))),
    }
}
