//! What a server says of itself when it is asked: its models, its engine, its version. It is asked for a list and for at most
//! two other pages; nothing is generated.

use reqwest::{Client, StatusCode};
use serde_json::Value;

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
    let base = question.url.trim_end_matches('/');
    let response = send(client.get(format!("{base}/models")), question).await?;
    if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(refusal(question, response).await);
    }
    let header = response.headers().get("server").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let list = if response.status().is_success() { body(response, question).await? } else { Value::Null };
    let first = &list["data"][0];
    let longest = first["max_model_len"].as_u64().or_else(|| first["meta"]["n_ctx_train"].as_u64());
    let ids = list["data"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
    let models = ids.take(MOST_MODELS).map(|id| question.presentable(id)).collect();
    let mut engine = engine_of(first["owned_by"].as_str().unwrap_or_default(), &header);
    let root = base.strip_suffix("/v1").unwrap_or(base);
    let (pages, known) = pages(engine.as_ref().map(|(engine, _)| *engine));
    let mut version = None;
    for (page, key, of) in pages {
        let Ok(response) = send(client.get(format!("{root}{page}")), question).await else { break };
        if !response.status().is_success() {
            continue;
        }
        if let Some(found) = body(response, question).await.unwrap_or_default()[*key].as_str() {
            version = Some(question.presentable(found));
            if !known {
                engine = Some((*of, format!("it answers at {page}")));
            }
            break;
        }
    }
    Ok(Description { models, longest, engine, version })
}

/// The engine by who owns the first model, or by the `Server` header.
fn engine_of(owner: &str, header: &str) -> Option<(Engine, String)> {
    let known = [
        ("vllm", Engine::Vllm),
        ("sglang", Engine::Sglang),
        ("llamacpp", Engine::Llamacpp),
        ("llama.cpp", Engine::Llamacpp),
        ("text-generation-inference", Engine::Tgi),
        ("sweepline", Engine::Mock),
    ];
    let find = |text: &str| {
        let text = text.to_ascii_lowercase();
        known.iter().find(|(name, _)| text.contains(name)).map(|(_, engine)| *engine)
    };
    let by_owner = find(owner).map(|engine| (engine, format!("its models are owned by {owner}")));
    by_owner.or_else(|| find(header).map(|engine| (engine, format!("its Server header is {header}"))))
}

/// A page that tells a version: path, key, and whose it is.
type Page = (&'static str, &'static str, Engine);

/// The pages to ask, by the engine's own documentation, and whether the engine is known.
fn pages(engine: Option<Engine>) -> (&'static [Page], bool) {
    const VLLM: &[Page] = &[("/version", "version", Engine::Vllm)];
    const SGLANG: &[Page] = &[("/get_server_info", "version", Engine::Sglang)];
    const NIM: &[Page] = &[("/v1/version", "release", Engine::Nim)];
    const TGI: &[Page] = &[("/info", "version", Engine::Tgi)];
    const LLAMACPP: &[Page] = &[("/props", "build_info", Engine::Llamacpp)];
    const MOCK: &[Page] = &[("/version", "version", Engine::Mock)];
    const UNKNOWN: &[Page] = &[("/version", "version", Engine::Vllm), ("/v1/version", "release", Engine::Nim)];
    match engine {
        Some(Engine::Vllm) => (VLLM, true),
        Some(Engine::Sglang) => (SGLANG, true),
        Some(Engine::Nim) => (NIM, true),
        Some(Engine::Tgi) => (TGI, true),
        Some(Engine::Llamacpp) => (LLAMACPP, true),
        Some(Engine::Mock) => (MOCK, true),
        Some(Engine::Openai) => (&[], true),
        None => (UNKNOWN, false),
    }
}
