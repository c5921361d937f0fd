//! Hugging Face's Text Generation Inference.

use super::source::{Exporter, Source, plain};

/// The table of metrics of Text Generation Inference.
pub(super) const TGI: Exporter =
    Exporter { title: "Text Generation Inference", source: SOURCE, only_with: None, series: SERIES, counted: &[] };

const SOURCE: &str = "TGI 3.3.7 (dfb3fbe), `router/src/server.rs`, `router/src/validation.rs` and `backends/v3/src`";

const SERIES: &[Source] = &[
    plain("requests_running", "tgi_batch_current_size"),
    plain("requests_waiting", "tgi_queue_size"),
    plain("prompt_tokens", "tgi_request_input_length_sum"),
    plain("generation_tokens", "tgi_request_generated_tokens_sum"),
    plain("spec_accepted", "tgi_request_skipped_tokens_sum"),
    plain("requests_succeeded", "tgi_request_success"),
    plain("requests_failed", "tgi_request_failure"),
    plain("queue_seconds", "tgi_request_queue_duration"),
    plain("e2e_seconds", "tgi_request_duration"),
];
