//! TensorRT-LLM's `trtllm-serve`, at /prometheus/metrics. Its /metrics is JSON, and reading it drains
//! the engine's statistics.

use super::source::{Exporter, Moment, Source, labelled, plain};

/// TensorRT-LLM.
pub(super) const TRTLLM: Exporter =
    Exporter { title: "TensorRT-LLM", source: SOURCE, only_with: None, series: SERIES, counted: COUNTED };

const SOURCE: &str = "TensorRT-LLM 050f80d, `tensorrt_llm/metrics/collector.py`";

/// Read from `log_request_metrics_dict`: all values are counted when a request has a finish reason,
/// including TTFT; cancelled requests are not counted.
const COUNTED: &[(&str, Moment)] = &[("ttft_seconds", Moment::End)];

const SERIES: &[Source] = &[
    plain("requests_running", "trtllm_num_requests_running"),
    plain("requests_waiting", "trtllm_num_requests_waiting"),
    plain("kv_cache_usage", "trtllm_kv_cache_utilization"),
    plain("prompt_tokens", "trtllm_prompt_tokens"),
    plain("generation_tokens", "trtllm_generation_tokens"),
    plain("prefix_cache_hits", "trtllm_prompt_cached_tokens"),
    plain("spec_drafts", "trtllm_spec_decode_num_draft_tokens"),
    plain("spec_accepted", "trtllm_spec_decode_num_accepted_tokens"),
    labelled("requests_succeeded", "trtllm_request_success", &[("finished_reason", &["stop", "length"])]),
    plain("queue_seconds", "trtllm_request_queue_time_seconds"),
    plain("prefill_seconds", "trtllm_request_prefill_time_seconds"),
    plain("decode_seconds", "trtllm_request_decode_time_seconds"),
    plain("ttft_seconds", "trtllm_time_to_first_token_seconds"),
    plain("e2e_seconds", "trtllm_e2e_request_latency_seconds"),
];
