//! llama.cpp's server, started with `--metrics`. It writes only six digits, so a counter above a
//! million loses its last digits.

use super::source::{Exporter, Source, plain, plus};

/// llama.cpp.
pub(super) const LLAMACPP: Exporter =
    Exporter { title: "llama.cpp", source: SOURCE, only_with: None, series: SERIES, counted: &[] };

const SOURCE: &str = "llama.cpp 0c1e57098, `tools/server/server-task.cpp`, and the page of a running b11434; `kv_cache_usage_ratio` from 7841fc72";

const SERIES: &[Source] = &[
    plain("requests_running", "llamacpp:requests_processing"),
    plain("requests_waiting", "llamacpp:requests_deferred"),
    plain("kv_cache_usage", "llamacpp:kv_cache_usage_ratio"),
    plain("prefix_cache_hits", "llamacpp:prompt_tokens_cached"),
    plain("prompt_tokens", "llamacpp:prompt_tokens"),
    plus("prompt_tokens", "llamacpp:prompt_tokens_cached"),
    plain("generation_tokens", "llamacpp:tokens_predicted"),
    plain("spec_drafts", "llamacpp:spec_decode_num_draft_tokens"),
    plain("spec_accepted", "llamacpp:spec_decode_num_accepted_tokens"),
];
