//! What a server says of itself when it is asked: its models, its engine, its version. It is asked for a list and for at most
//! two other pages; nothing is generated.

use std::collections::BTreeMap;

use reqwest::{Client, StatusCode};
use serde_json::Value;

use super::fingerprint::{read, server_header};
use super::probe::{MOST_MODELS, ProbeError, Question, body, client, refusal, send, unreachable, words};
use crate::plan::Engine;

/// What a server said of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// The models it lists.
    pub models: Vec<String>,
    /// The most tokens of the first of them, prompt and answer together.
    pub longest: Option<u64>,
    /// The engine, and by what it shows.
    pub engine: Option<(Engine, String)>,
    /// Its version.
    pub version: Option<String>,
    /// Flags that it tells.
    pub flags: BTreeMap<String, String>,
    /// The status with which it refused to list its models; none where it listed them.
    pub refused: Option<u16>,
}

/// Asks a server for its models and its version.
pub fn describe(question: &Question) -> Result<Description, ProbeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| unreachable(question, error.to_string()))?;
    runtime.block_on(async {
        let client = client(question).map_err(|error| unreachable(question, words(&error)))?;
        ask(&client, question).await
    })
}

async fn ask(client: &Client, question: &Question) -> Result<Description, ProbeError> {
    let response = send(client.get(question.models_url()), question).await?;
    if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(refusal(question, response).await);
    }
    let header = server_header(&response);
    let refused = Some(response.status().as_u16()).filter(|_| !response.status().is_success());
    let list = if response.status().is_success() { body(response, question).await? } else { Value::Null };
    let first = &list["data"][0];
    let longest = first["max_model_len"].as_u64().or_else(|| first["meta"]["n_ctx_train"].as_u64());
    let ids = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    let models = ids.take(MOST_MODELS).map(|id| question.presentable(id)).collect();
    let said = read(client, question, Engine::Openai, (&list, &header)).await;
    let longest = longest.or(said.context_length);
    Ok(Description { models, longest, engine: said.engine, version: said.version, flags: said.flags, refused })
}
