//! A server under test: where it is, what answers there, and what is declared of it.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error_policy::ErrorPolicy;
use super::extra::Json;
use super::mock_figures::MockFigures;
use super::model::Table;
use super::price::Owned;
use super::ready::Ready;
use super::retries::Retries;
use super::scalar::Fact;
use super::shorthand::SecretRef;
use crate::units::{Decimal, Nanos};

/// A server under test: a `url`, or the embedded mock (`engine: mock`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = super::schema::one_server)]
pub struct Endpoint {
    /// Base address of the OpenAI-compatible API, like http://127.0.0.1:8000/v1. Absent for the embedded mock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::url")]
    pub url: Option<String>,
    /// Which inference engine answers; decides which extensions are sent (such as ignore_eos).
    #[serde(default)]
    pub engine: Engine,
    /// Which API is called.
    #[serde(default)]
    pub api: Api,
    /// The API key, as a reference: { secret: env:VLLM_API_KEY } or { secret: file:key.txt }. Never the key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "secret": "env:VLLM_API_KEY" }))]
    pub api_key: Option<SecretRef>,
    /// The hardware the server runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// Facts about the running server that decide its speed. Well-known are `version`, `tensor_parallel`,
    /// `pipeline_parallel`, `attention_backend`, `scheduler` and `flags`; others may stand beside them. Every fact is part
    /// of a run's identity.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(schema_with = "super::disclosure::server_schema")]
    pub server: Table<Fact>,
    /// When the server is ready, and how long a sweep waits for it. Decides no number: results stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "path": "/health", "within": "15m" }))]
    pub ready: Option<Ready>,
    /// What the endpoint shares with others: runs on one resource never overlap. Default: its server, which endpoints with
    /// the same scheme, host and port share; an embedded mock shares nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "node-a")]
    pub resource: Option<String>,
    /// The embedded mock's behaviour; only with `engine: mock` and without `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock: Option<MockFigures>,
    /// Set to true to accept any TLS certificate of this endpoint. Say why in `notes`.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub insecure_tls: bool,
    /// How often a run is tried again that the environment spoiled; then it is given up. Default { runs: 3 }.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "runs": 10 }))]
    pub retries: Option<Retries>,
    /// What a server that is away, or turns the load away by 429, means: `environment` ends the attempt and commits nothing of
    /// it, `measured` makes every error a measurement. Default: environment. No part of a run's identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "environment"), example = &"measured")]
    pub errors: Option<ErrorPolicy>,
    /// Fields that every request to this endpoint carries in its body, sent as they stand: what this server takes and
    /// sweepline does not know. A scenario's `extra` lies over them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "super::extra::Fields", example = serde_json::json!({ "route": "pool-a" }))]
    pub extra: Table<Json>,
}

impl Endpoint {
    /// How long a sweep waits for the server.
    pub fn ready_within(&self) -> Nanos {
        self.ready.as_ref().and_then(|ready| ready.within).unwrap_or(Ready::WITHIN)
    }

    /// The path that says whether the server is ready, if there is one.
    pub fn ready_path(&self) -> Option<String> {
        self.ready.as_ref()?.path.clone()
    }

    /// How often a run is tried again that the environment spoiled.
    pub fn retries(&self) -> u32 {
        self.retries.unwrap_or_default().runs
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The inference engine behind an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// NVIDIA NIM.
    Nim,
    /// Hugging Face Text Generation Inference.
    Tgi,
    /// llama.cpp's server.
    Llamacpp,
    /// Any other OpenAI-compatible server.
    #[default]
    Openai,
    /// sweepline's own mock; embedded when the endpoint has no `url`.
    Mock,
}

impl Engine {
    /// All of them, as they are documented.
    pub const ALL: [Engine; 7] =
        [Engine::Vllm, Engine::Sglang, Engine::Nim, Engine::Tgi, Engine::Llamacpp, Engine::Openai, Engine::Mock];

    /// The name in plans and rows.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Vllm => "vllm",
            Engine::Sglang => "sglang",
            Engine::Nim => "nim",
            Engine::Tgi => "tgi",
            Engine::Llamacpp => "llamacpp",
            Engine::Openai => "openai",
            Engine::Mock => "mock",
        }
    }

    /// Whether the engine knows the request field `ignore_eos` (vLLM and SGLang do; others may reject it).
    pub fn takes_ignore_eos(self) -> bool {
        matches!(self, Engine::Vllm | Engine::Sglang | Engine::Mock)
    }
}

/// Which of the two OpenAI APIs is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// POST /chat/completions.
    #[default]
    Chat,
    /// POST /completions.
    Completions,
}

impl Api {
    /// The name in plans and rows.
    pub fn name(self) -> &'static str {
        match self {
            Api::Chat => "chat",
            Api::Completions => "completions",
        }
    }
}

/// The declared hardware of an endpoint. `gpu` and `gpus` are part of a run's identity; the rest is for readers of the
/// results, and a run keeps its result when it is added or changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The accelerator, like H100-SXM-80GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "H100-SXM-80GB")]
    pub gpu: Option<String>,
    /// How many of them serve this endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    #[schemars(example = 8)]
    pub gpus: Option<u32>,
    /// Memory of one accelerator, like 80GB HBM3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"80GB HBM3")]
    pub memory: Option<String>,
    /// Memory bandwidth of one accelerator, like 3.35TB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = "3.35TB/s")]
    pub memory_bandwidth: Option<String>,
    /// How the accelerators are connected, like nvlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"nvlink")]
    pub interconnect: Option<String>,
    /// The network between the client and the server, like 25GbE in one rack; `loopback` where both are one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"25GbE, one rack")]
    pub network: Option<String>,
    /// What the server loads its weights from, like local NVMe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"local NVMe")]
    pub storage: Option<String>,
    /// Price of the whole endpoint per hour, in your currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    #[schemars(example = 31.2)]
    pub price_per_hour: Option<Decimal>,
    /// What it cost, where it was bought, in the place of `price_per_hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "purchase_price": 240_000, "lifetime_years": 4, "energy_price_per_kwh": 0.25 }))]
    pub owned: Option<Owned>,
    /// Power of the whole endpoint under load, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0), example = 5_600)]
    pub watts: Option<Decimal>,
}
