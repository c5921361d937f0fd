//! Inference engines.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The inference engine behind an endpoint.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
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
        self.into()
    }

    /// The request by which a server of this engine forgets its prefix cache, as method and path behind the base without `/v1`. vLLM
    /// (entrypoints/openai/api_server.py) has it where it was started with `VLLM_SERVER_DEV_MODE=1`, SGLang
    /// (entrypoints/http_server.py) always.
    pub fn reset_prefix_cache(self) -> Option<(&'static str, &'static str)> {
        match self {
            Engine::Vllm | Engine::Mock => Some(("POST", "/reset_prefix_cache")),
            Engine::Sglang => Some(("POST", "/flush_cache")),
            Engine::Nim | Engine::Tgi | Engine::Llamacpp | Engine::Openai => None,
        }
    }

    /// Whether the engine knows the request field `ignore_eos` (vLLM and SGLang do; others may reject it).
    pub fn takes_ignore_eos(self) -> bool {
        matches!(self, Engine::Vllm | Engine::Sglang | Engine::Mock)
    }
}
