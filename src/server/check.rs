//! Whether a server is there: asked while a load is on it, so as little as tells it.

use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode};

use crate::units::{Nanos, patience};

use super::probe::{Question, client, generation, words};

/// What is known of a server after one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It answers.
    Here,
    /// It does not, or says that it is not available; in words with its address.
    Away(String),
    /// No answer in time.
    TimedOut,
}

/// Asks a server whether it is there, by the path that says so, or else by its list of models. Blocks for ten seconds at most.
///
/// A server that refuses the key or has no such list is there, and so is one that fails with another 5xx: it answers. 502, 503
/// and 504 are what a gateway says for a server that is not. With `generates` it is then asked for one token: a gateway may know its
/// list of models also when nobody is behind it.
pub fn check(question: &Question, generates: bool) -> Presence {
    let within = patience();
    let question = &Question { connect: within, within, ..question.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // A machine that cannot ask knows nothing of the server.
    let Ok(runtime) = runtime else { return Presence::Here };
    runtime.block_on(async {
        // The client bounds connection and answer; together they have no longer.
        tokio::time::timeout(Duration::from(within), ask(question, generates)).await.unwrap_or(Presence::TimedOut)
    })
}

/// Whether a server says that it is ready: its ready path, or else its list of models, answers with 2xx. Blocks for two seconds at most.
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

/// What a gateway says for a server that is not there, or the server of itself.
const GONE: [StatusCode; 3] = [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];

/// Asks one question; an answer with one of these statuses means that the server is away.
async fn answer(request: RequestBuilder, question: &Question, away: &[StatusCode]) -> Presence {
    let request = question.signed(request);
    let url = question.shown();
    match request.send().await {
        Ok(response) if away.contains(&response.status()) => {
            Presence::Away(format!("{url} answers HTTP {}", response.status().as_u16()))
        }
        Ok(_) => Presence::Here,
        Err(error) if error.is_timeout() => Presence::TimedOut,
        Err(error) => Presence::Away(format!("{url} does not answer: {}", question.presentable(&words(&error)))),
    }
}
