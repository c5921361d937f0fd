//! SGLang, started with `--enable-metrics`. With `--enable-metrics-for-all-schedulers`, every
//! tensor-parallel rank reports the same requests, so the sums of the gauges are too high. In this case, a
//! plan should map the gauges of only one `tp_rank`.

use super::source::{Exporter, Moment, Source, labelled, plain};

/// The table of metrics of SGLang.
pub(super) const SGLANG: Exporter =
    Exporter { title: "SGLang", source: SOURCE, only_with: None, series: SERIES, counted: COUNTED };

const SOURCE: &str = "SGLang 0.5.23, `python/sglang/srt/observability/metrics_collector.py`";

/// Labels that select the scheduler's series: the totals over all priorities, for the first
/// pipeline stage.
const OF_SCHEDULER: &[(&str, &[&str])] = &[("priority", &[""]), ("pp_rank", &["0", ""])];

/// According to `managers/tokenizer_manager.py` and `observability/req_time_stats.py`, queue time is
/// counted when the first forward pass begins, and prefill time when this pass ends.
const COUNTED: &[(&str, Moment)] = &[("queue_seconds", Moment::FirstToken), ("prefill_seconds", Moment::FirstToken)];

const SERIES: &[Source] = &[
    labelled("requests_running", "sglang:num_running_reqs", OF_SCHEDULER),
    labelled("requests_waiting", "sglang:num_queue_reqs", OF_SCHEDULER),
    labelled("kv_cache_usage", "sglang:token_usage", OF_SCHEDULER),
    labelled(
        "prefix_cache_queries",
        "sglang:prefill_effective_tokens",
        &[("mode", &["input", "device_hit", "host_hit", "storage_hit"])],
    ),
    labelled(
        "prefix_cache_hits",
        "sglang:prefill_effective_tokens",
        &[("mode", &["device_hit", "host_hit", "storage_hit"])],
    ),
    labelled("preemptions", "sglang:num_retracted_requests", OF_SCHEDULER),
    plain("prompt_tokens", "sglang:prompt_tokens"),
    plain("generation_tokens", "sglang:generation_tokens"),
    plain("requests_succeeded", "sglang:num_requests"),
    labelled("queue_seconds", "sglang:queue_time_seconds", OF_SCHEDULER),
    labelled("prefill_seconds", "sglang:per_stage_req_latency_seconds", &[("stage", &["prefill_forward"])]),
    plain("ttft_seconds", "sglang:time_to_first_token_seconds"),
    plain("e2e_seconds", "sglang:e2e_request_latency_seconds"),
];
