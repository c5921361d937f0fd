//! NVIDIA's Triton server with its TensorRT-LLM backend. Each model of an ensemble counts requests; map
//! the counts of the served model. Its GPU figures are polled every two seconds.

use super::source::{Exporter, Source, labelled, plain, scaled};

/// Triton.
pub(super) const TRITON: Exporter =
    Exporter { title: "Triton", source: SOURCE, only_with: None, series: SERIES, counted: &[] };

const SOURCE: &str =
    "Triton core 73aad7c, `src/metrics.cc`; TensorRT-LLM 0d5352f, `triton_backend/inflight_batcher_llm`";

const SERIES: &[Source] = &[
    labelled("requests_running", "nv_trt_llm_request_metrics", &[("request_type", &["scheduled"])]),
    labelled("requests_waiting", "nv_trt_llm_request_metrics", &[("request_type", &["waiting"])]),
    labelled("kv_cache_usage", "nv_trt_llm_kv_cache_block_metrics", &[("kv_cache_block_type", &["fraction"])]),
    labelled("prompt_tokens", "nv_llm_input_token_len_sum", &[("response_metric_type", &["total_input_tokens"])]),
    labelled("generation_tokens", "nv_llm_output_token_len_sum", &[("response_metric_type", &["total_output_tokens"])]),
    scaled("ttft_seconds", "nv_inference_first_response_histogram_ms", 0.001),
    plain("gpu_utilization", "nv_gpu_utilization"),
    plain("gpu_memory_used", "nv_gpu_memory_used_bytes"),
    plain("gpu_memory_total", "nv_gpu_memory_total_bytes"),
    plain("gpu_power_watts", "nv_gpu_power_usage"),
    plain("gpu_energy_joules", "nv_energy_consumption"),
    plain("cpu_utilization", "nv_cpu_utilization"),
    plain("host_memory_total", "nv_cpu_memory_total_bytes"),
];
