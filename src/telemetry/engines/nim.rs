//! NVIDIA NIM for LLMs, 1.x. It is closed source, so the names are taken from its documentation. 2.x
//! uses the names of its engine.

use super::source::{Exporter, Source, plain};

/// NVIDIA NIM.
pub(super) const NIM: Exporter =
    Exporter { title: "NVIDIA NIM", source: SOURCE, only_with: Some("num_request_max"), series: SERIES, counted: &[] };

const SOURCE: &str = "NVIDIA NIM for LLMs 1.5 and later 1.x, `docs.nvidia.com/nim/large-language-models`, \
                     Observability (closed source)";

const SERIES: &[Source] = &[
    plain("requests_running", "num_requests_running"),
    plain("requests_waiting", "num_requests_waiting"),
    plain("kv_cache_usage", "gpu_cache_usage_perc"),
    plain("prompt_tokens", "prompt_tokens"),
    plain("generation_tokens", "generation_tokens"),
    plain("requests_succeeded", "request_success"),
    plain("requests_failed", "request_failure"),
    plain("ttft_seconds", "time_to_first_token_seconds"),
    plain("e2e_seconds", "e2e_request_latency_seconds"),
];
