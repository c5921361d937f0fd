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
    /// Any other server with an OpenAI-compatible API.
    #[default]
    Openai,
    /// sweepline's own mock; embedded if the endpoint has no `url`.
    Mock,
}

impl Engine {
    /// All engines, in documentation order.
    pub const ALL: [Engine; 7] =
        [Engine::Vllm, Engine::Sglang, Engine::Nim, Engine::Tgi, Engine::Llamacpp, Engine::Openai, Engine::Mock];

    /// The name in plans and in rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
