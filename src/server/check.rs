//! Checks whether a server is reachable. The check runs under load, so it sends as few requests as
//! possible.

use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode};

use crate::units::{Nanos, patience};

use super::probe::{Question, client, generation, words};

/// The state of a server after one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// The server responds.
    Here,
    /// The server does not respond, or reports that it is not available. The text includes its
    /// address.
    Away(String),
    /// No response in time.
    TimedOut,
}

/// Checks whether a server is reachable, using its readiness path, or else its list of models. Blocks for
/// at most ten seconds.
///
/// A server that rejects the key or has no list of models is reachable, because it responds. The
/// same applies if it fails with a 5xx other than 502, 503 and 504, which gateways return for a
/// server that they cannot reach. With `generates`, one token is then requested as well, because a
/// gateway may return its list of models even if no server is behind it.
pub fn check(question: &Question, generates: bool) -> Presence {
    let within = patience();
    let question = &Question { connect: within, within, ..question.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // If this machine cannot send requests, that shows nothing about the server.
    let Ok(runtime) = runtime else { return Presence::Here };
    runtime.block_on(async {
        // The client limits connection and response separately; this limits both together.
        tokio::time::timeout(Duration::from(within), ask(question, generates)).await.unwrap_or(Presence::TimedOut)
    })
}

/// Whether a server reports that it is ready, that is, its readiness path, or else its list of
/// models, responds with 2xx. Blocks for at most two seconds.
pub fn is_ready(question: &Question) -> bool {
    const WITHIN: Nanos = Nanos::from_secs(2);
    let question = &Question { connect: WITHIN, within: WITHIN, ..question.clone() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return false };
    runtime.block_on(async {
        let (Ok(client), Ok(address)) = (client(question), question.ready_url()) else { return false };
        let response = question.signed(client.get(address)).send().await;
        response.is_ok_and(|response| response.status().is_success())
    })
}

async fn ask(question: &Question, generates: bool) -> Presence {
    let (Ok(client), Ok(address)) = (client(question), question.ready_url()) else { return Presence::Here };
    let listed = answer(client.get(address), question, &GONE).await;
    if !generates || listed != Presence::Here {
        return listed;
    }
    answer(generation(&client, question, 1), question, &[&GONE[..], &[StatusCode::TOO_MANY_REQUESTS]].concat()).await
}

/// Statuses from a gateway whose server is not reachable, or from a server that is unavailable.
const GONE: [StatusCode; 3] = [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];

/// Sends one request; a response with one of these statuses means that the server is away.
async fn answer(request: RequestBuilder, question: &Question, away: &[StatusCode]) -> Presence {
    let request = question.signed(request);
    let url = question.shown();
    match request.send().await {
        Ok(response) if away.contains(&response.status()) => {
            Presence::Away(format!("{url} returns HTTP {}", response.status().as_u16()))
        }
        Ok(_) => Presence::Here,
        Err(error) if error.is_timeout() => Presence::TimedOut,
        Err(error) => Presence::Away(format!("{url} does not respond: {}", question.presentable(&words(&error)))),
    }
}
