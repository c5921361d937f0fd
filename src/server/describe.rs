//! Reads a server's description of itself: its models, its engine and its version. Requests the list of
//! models, and the pages that may contain the version: those of the recognized engine, or those of all
//! engines if none was recognized. Nothing is generated.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::Value;

use super::fingerprint::{read, server_header};
use super::probe::{MOST_MODELS, ProbeError, Question, body, client, refusal, send, unreachable};
use crate::network::{Client, Request};
use crate::plan::Engine;

/// A server's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// The models that the server lists.
    pub models: Vec<String>,
    /// Maximum number of tokens of a prompt and its response together, for the first model; `None` if
    /// unknown.
    pub longest: Option<u64>,
    /// The engine, and how it was recognized; `None` if it was not recognized.
    pub engine: Option<(Engine, String)>,
    /// The version of the engine; `None` if unknown.
    pub version: Option<String>,
    /// Flags that the server reports.
    pub flags: BTreeMap<String, String>,
    /// The HTTP status with which the server refused to list its models; `None` if it listed them.
    pub refused: Option<u16>,
    /// Whether the response was a list of models, that is, JSON with a list `data`. An HTML page, for
    /// example, is not a list of models.
    pub is_list: bool,
    /// Whether the server responded at all.
    pub responded: bool,
}

/// Requests a server's description of itself. Blocks until the responses have arrived or timed out.
pub fn describe(question: &Question) -> Result<Description, ProbeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| unreachable(question, error.to_string()))?;
    runtime.block_on(async {
        let client = client(question).map_err(|error| unreachable(question, error.to_string()))?;
        ask(&client, question).await
    })
}

async fn ask(client: &Client, question: &Question) -> Result<Description, ProbeError> {
    let response = send(client, Request::get(question.models_path()), question).await?;
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
    let is_list = list["data"].is_array();
    let said = read(client, question, Engine::Openai, (&list, &header)).await;
    let longest = longest.or(said.context_length);
    Ok(Description {
        models,
        longest,
        engine: said.engine,
        version: said.version,
        flags: said.flags,
        refused,
        is_list,
        responded: true,
    })
}
