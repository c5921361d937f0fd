//! vLLM's V1 engine; names from earlier versions are listed after the current ones.

use super::source::{Exporter, Source, labelled, plain};

/// vLLM.
pub(super) const VLLM: Exporter =
    Exporter { title: "vLLM", source: SOURCE, only_with: None, series: SERIES, counted: &[] };

const SOURCE: &str = "vLLM 0.33.0, `vllm/v1/metrics/loggers.py` and `vllm/v1/spec_decode/metrics.py`; earlier names \
                      from 0.8.5 to 0.11.0";

const SERIES: &[Source] = &[
    plain("requests_running", "vllm:num_requests_running"),
    plain("requests_waiting", "vllm:num_requests_waiting"),
    plain("kv_cache_usage", "vllm:kv_cache_usage_perc"),
    plain("kv_cache_usage", "vllm:gpu_cache_usage_perc"),
    plain("prefix_cache_queries", "vllm:prefix_cache_queries"),
    plain("prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    plain("prefix_cache_hits", "vllm:prefix_cache_hits"),
    plain("prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    plain("preemptions", "vllm:num_preemptions"),
    plain("prompt_tokens", "vllm:prompt_tokens"),
    plain("generation_tokens", "vllm:generation_tokens"),
    plain("spec_drafts", "vllm:spec_decode_num_draft_tokens"),
    plain("spec_accepted", "vllm:spec_decode_num_accepted_tokens"),
    labelled("requests_succeeded", "vllm:request_success", &[("finished_reason", &["stop", "length", "repetition"])]),
    labelled("requests_failed", "vllm:request_success", &[("finished_reason", &["abort", "error"])]),
    plain("queue_seconds", "vllm:request_queue_time_seconds"),
    plain("prefill_seconds", "vllm:request_prefill_time_seconds"),
    plain("decode_seconds", "vllm:request_decode_time_seconds"),
    plain("ttft_seconds", "vllm:time_to_first_token_seconds"),
    plain("e2e_seconds", "vllm:e2e_request_latency_seconds"),
];
