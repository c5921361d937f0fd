//! `models:` of a plan: the models under test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::scalar::ModelId;
use crate::plan::model::tokenizer::TokenizerPath;
use crate::units::Decimal;

/// A model under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model id as the servers know it: one text, or one per engine with a `default`.
    #[schemars(example = "meta-llama/Llama-3.1-70B-Instruct")]
    pub id: ModelId,
    /// Number of weights, like 70.6e9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[schemars(example = 70.6e9)]
    pub parameters: Option<Decimal>,
    /// For a mixture of experts: number of weights used per token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    #[schemars(example = 3.3e9)]
    pub active_parameters: Option<Decimal>,
    /// The dimensions that determine the size of the model's KV cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = serde_json::json!({ "layers": 80, "kv_heads": 8, "head_dim": 128 }))]
    pub shape: Option<ModelShape>,
    /// Number format of the weights, like bf16 or fp8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"bf16")]
    #[schemars(example = &"fp8")]
    pub precision: Option<String>,
    /// The model's tokenizer: its tokenizer.json, or a folder that contains it together with
    /// tokenizer_config.json and chat_template.jinja. Relative to the plan's file. Prompts then have exactly
    /// the requested number of tokens, including those of the chat template; without it, lengths are
    /// estimates. `server`: the server counts with its /tokenize, if available (vLLM, SGLang, llama.cpp).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"tokenizers/llama-3.1")]
    #[schemars(example = &"server")]
    pub tokenizer: Option<TokenizerPath>,
}

/// The dimensions that determine the size of a model's KV cache, as in its config.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelShape {
    /// Number of attention layers (`num_hidden_layers`).
    #[schemars(range(min = 1), example = 80)]
    pub layers: u32,
    /// Number of key and value heads (`num_key_value_heads`).
    #[schemars(range(min = 1), example = 8)]
    pub kv_heads: u32,
    /// Dimension of a head (`head_dim`, or hidden_size / num_attention_heads).
    #[schemars(range(min = 1), example = 128)]
    pub head_dim: u32,
    /// Number format of the cache. Default: 16 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"fp8")]
    pub kv_precision: Option<String>,
}
