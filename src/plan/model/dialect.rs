//! The fields that each engine accepts and reports, and their names. Requests, the probe, the load gauge and
//! `docs/SERVERS.md` all use this table. Every entry names its source. Facts that were not verified are left
//! empty, never guessed. `extra/dialect.rs` lists the additional request fields of each engine, from the same
//! sources.

use crate::plan::model::engine::Engine;

/// The known facts about one engine.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// The engine.
    pub engine: Engine,
    /// The usual name of the engine.
    pub title: &'static str,
    /// The version on which the entry is based, and its source.
    pub source: &'static str,
    /// Whether requests may carry `ignore_eos`; `None` if not verified.
    pub ignore_eos: Option<bool>,
    /// Whether sweepline sends `ignore_eos`. This is part of a run's identity, so it may stay false even if
    /// the engine accepts the field.
    pub(crate) sends_ignore_eos: bool,
    /// Whether requests may carry `min_tokens`; `None` if not verified.
    pub min_tokens: Option<bool>,
    /// Whether a stream reports token usage if the request contains `stream_options: { include_usage: true
    /// }`; `None` if not verified.
    pub include_usage: Option<bool>,
    /// The fields of a delta that carry reasoning, the newest name first; empty if none is known.
    pub reasoning: &'static [&'static str],
    /// Where the usage in a response reports tokens from the prefix cache; `None` if not known.
    pub cached_tokens: Option<Place>,
    /// The request that clears the prefix cache; `None` if not known.
    pub reset: Option<Reset>,
    /// The pages that report the version, the most likely first.
    pub version: &'static [Page],
    /// Where the server reports running and waiting requests; `None` if not known.
    pub gauges: Option<Gauges>,
    /// The value of `owned_by` in the list of models.
    pub owner: Option<&'static str>,
    /// The value of the `Server` header.
    pub header: Option<&'static str>,
    /// JSON pointers of the flags to record from the version page. The whole page is never recorded, because
    /// it may contain keys.
    pub flags: &'static [&'static str],
    /// Where the version page reports the file or name of the served model.
    pub model: Option<&'static str>,
    /// Where the version page, or an entry of the list of models, reports the maximum number of tokens that a
    /// prompt and its response may have together.
    pub context: &'static [&'static str],
}

/// A place in a response, and what the server needs at startup to report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The place in the response.
    pub name: &'static str,
    /// The flag or variable that this requires, if any.
    pub needs: Option<&'static str>,
}

/// A request that clears the prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset {
    /// The method.
    pub method: &'static str,
    /// The path, from the server's root.
    pub path: &'static str,
    /// The flag or variable that this requires, if any.
    pub needs: Option<&'static str>,
    /// The condition under which the request has no effect, if any.
    pub unless: Option<&'static str>,
}

/// A page that reports a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The path, from the server's root.
    pub path: &'static str,
    /// The key of the version in the page's JSON.
    pub key: &'static str,
    /// Whether no other known engine has this page, so that it identifies the engine.
    pub is_telling: bool,
}

/// The gauges of requests in the Prometheus text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauges {
    /// The path of the metrics page, from the server's root.
    pub path: &'static str,
    /// The gauge of running requests.
    pub running: &'static str,
    /// The gauge of waiting requests.
    pub waiting: &'static str,
    /// The flag that this requires, if any.
    pub needs: Option<&'static str>,
}

/// Where OpenAI's usage reports tokens from the prefix cache.
const DETAILS: &str = "usage.prompt_tokens_details.cached_tokens";

const fn page(path: &'static str, key: &'static str, is_telling: bool) -> Page {
    Page { path, key, is_telling }
}

/// The table, in the order of [`Engine::ALL`].
pub const DIALECTS: [Dialect; 7] = [
    Dialect {
        engine: Engine::Vllm,
        title: "vLLM",
        source: "vLLM 0.11.0, `vllm/entrypoints/openai/{protocol,api_server}.py` and \
                 `vllm/v1/metrics/loggers.py`; for the field `reasoning`, vLLM's main branch (commit 040a2cc), \
                 which also keeps `reasoning_content`",
        ignore_eos: Some(true),
        sends_ignore_eos: true,
        min_tokens: Some(true),
        include_usage: Some(true),
        reasoning: &["reasoning", "reasoning_content"],
        cached_tokens: Some(Place { name: DETAILS, needs: Some("--enable-prompt-tokens-details") }),
        reset: Some(Reset {
            method: "POST",
            path: "/reset_prefix_cache",
            needs: Some("VLLM_SERVER_DEV_MODE=1"),
            unless: None,
        }),
        version: &[page("/version", "version", false)],
        gauges: Some(Gauges {
            path: "/metrics",
            running: "vllm:num_requests_running",
            waiting: "vllm:num_requests_waiting",
            needs: None,
        }),
        owner: Some("vllm"),
        header: None,
        flags: &[],
        model: None,
        context: &["/max_model_len"],
    },
    Dialect {
        engine: Engine::Sglang,
        title: "SGLang",
        source: "SGLang 0.5.5 and 0.5.23, `sglang/srt/entrypoints/http_server.py`, `openai/protocol.py`, \
                 `server_args.py` and the metrics collector",
        ignore_eos: Some(true),
        sends_ignore_eos: true,
        min_tokens: Some(true),
        include_usage: Some(true),
        reasoning: &["reasoning_content"],
        cached_tokens: Some(Place { name: DETAILS, needs: Some("--enable-cache-report") }),
        reset: Some(Reset {
            method: "POST",
            path: "/flush_cache",
            needs: None,
            unless: Some("requests are running or waiting"),
        }),
        version: &[page("/server_info", "version", true), page("/get_server_info", "version", true)],
        gauges: Some(Gauges {
            path: "/metrics",
            running: "sglang:num_running_reqs",
            waiting: "sglang:num_queue_reqs",
            needs: Some("--enable-metrics"),
        }),
        owner: Some("sglang"),
        header: None,
        flags: &[
            "/tp_size",
            "/dp_size",
            "/pp_size",
            "/ep_size",
            "/dtype",
            "/quantization",
            "/kv_cache_dtype",
            "/attention_backend",
            "/mem_fraction_static",
            "/max_running_requests",
            "/max_total_tokens",
            "/chunked_prefill_size",
            "/max_prefill_tokens",
            "/schedule_policy",
            "/page_size",
            "/disable_radix_cache",
            "/disable_cuda_graph",
            "/speculative_algorithm",
        ],
        model: Some("/model_path"),
        context: &["/max_model_len"],
    },
    Dialect {
        engine: Engine::Nim,
        title: "NVIDIA NIM",
        source: "NVIDIA's reference documentation for NIM for LLMs 2.0.0 and 2.0.1; for the gauges, the \
                 observability page of a version before 2.0. `ignore_eos` and token usage were not verified",
        ignore_eos: None,
        sends_ignore_eos: false,
        min_tokens: None,
        include_usage: None,
        reasoning: &[],
        cached_tokens: None,
        reset: None,
        version: &[page("/v1/version", "release", true), page("/v1/metadata", "version", true)],
        gauges: Some(Gauges {
            path: "/v1/metrics",
            running: "num_requests_running",
            waiting: "num_requests_waiting",
            needs: None,
        }),
        owner: None,
        header: None,
        flags: &[],
        model: None,
        context: &["/max_model_len"],
    },
    Dialect {
        engine: Engine::Tgi,
        title: "Text Generation Inference",
        source: "Text Generation Inference 3.3.6-dev0 (commit db931fcf), `router/src/{lib,server}.rs`",
        ignore_eos: Some(false),
        sends_ignore_eos: false,
        min_tokens: Some(false),
        include_usage: Some(true),
        reasoning: &[],
        cached_tokens: None,
        reset: None,
        version: &[page("/info", "version", true)],
        gauges: Some(Gauges {
            path: "/metrics",
            running: "tgi_batch_current_size",
            waiting: "tgi_queue_size",
            needs: None,
        }),
        owner: None,
        header: None,
        flags: &["/max_concurrent_requests", "/max_input_tokens", "/max_total_tokens"],
        model: Some("/model_id"),
        context: &["/max_total_tokens"],
    },
    Dialect {
        engine: Engine::Llamacpp,
        title: "llama.cpp",
        source: "llama.cpp's `tools/server/README.md` (commit 00dc805), and a recorded stream. The server accepts \
                 `ignore_eos`, but sweepline does not send it, because that would change the ids of earlier results",
        ignore_eos: Some(true),
        sends_ignore_eos: false,
        min_tokens: Some(false),
        include_usage: Some(true),
        reasoning: &["reasoning_content"],
        cached_tokens: Some(Place { name: DETAILS, needs: None }),
        reset: None,
        version: &[page("/props", "build_info", true)],
        gauges: Some(Gauges {
            path: "/metrics",
            running: "llamacpp:requests_processing",
            waiting: "llamacpp:requests_deferred",
            needs: Some("--metrics"),
        }),
        owner: Some("llamacpp"),
        header: Some("llama.cpp"),
        flags: &["/total_slots"],
        model: Some("/model_path"),
        context: &["/default_generation_settings/n_ctx"],
    },
    Dialect {
        engine: Engine::Openai,
        title: "another server",
        source: "none: the server is unknown",
        ignore_eos: None,
        sends_ignore_eos: false,
        min_tokens: None,
        include_usage: None,
        reasoning: &[],
        cached_tokens: None,
        reset: None,
        version: &[],
        gauges: None,
        owner: None,
        header: None,
        flags: &[],
        model: None,
        context: &["/max_model_len"],
    },
    Dialect {
        engine: Engine::Mock,
        title: "sweepline's mock",
        source: "the code of the mock, `src/mock/`",
        ignore_eos: Some(true),
        sends_ignore_eos: true,
        min_tokens: Some(false),
        include_usage: Some(true),
        reasoning: &["reasoning", "reasoning_content"],
        cached_tokens: Some(Place { name: DETAILS, needs: Some("--prefix-cache") }),
        reset: Some(Reset { method: "POST", path: "/reset_prefix_cache", needs: None, unless: None }),
        version: &[page("/version", "version", false)],
        gauges: Some(Gauges {
            path: "/metrics",
            running: "vllm:num_requests_running",
            waiting: "vllm:num_requests_waiting",
            needs: None,
        }),
        owner: Some("sweepline"),
        header: None,
        flags: &[],
        model: None,
        context: &["/max_model_len"],
    },
];

impl Engine {
    /// Whether sweepline sends `ignore_eos` to the engine: true if the engine is known to accept it,
    /// except for engines with results from before this was known.
    pub fn takes_ignore_eos(self) -> bool {
        Dialect::of(self).sends_ignore_eos
    }
}

impl Dialect {
    /// The known facts about an engine.
    pub fn of(engine: Engine) -> &'static Dialect {
        let at = Engine::ALL.iter().position(|other| *other == engine).unwrap_or_default();
        &DIALECTS[at]
    }

    /// The dialect whose servers report this owner in the list of models or this `Server` header; `None` if
    /// neither is known.
    pub fn said_by(owner: &str, header: &str) -> Option<&'static Dialect> {
        let (owner, header) = (owner.to_ascii_lowercase(), header.to_ascii_lowercase());
        let by_owner = DIALECTS.iter().find(|dialect| dialect.owner.is_some_and(|name| owner.contains(name)));
        let by_header = || DIALECTS.iter().find(|dialect| dialect.header.is_some_and(|name| header.contains(name)));
        by_owner.or_else(by_header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::model::extra::dialect::{fields_of, names};

    #[test]
    fn every_engine_has_its_entry() {
        assert_eq!(DIALECTS.map(|dialect| dialect.engine), Engine::ALL);
        for dialect in &DIALECTS {
            assert_eq!(Dialect::of(dialect.engine).engine, dialect.engine);
            assert!(!dialect.sends_ignore_eos || dialect.ignore_eos == Some(true), "{}", dialect.title);
        }
    }

    #[test]
    fn the_fields_of_requests_say_the_same() {
        for dialect in DIALECTS.iter().filter(|dialect| fields_of(dialect.engine).next().is_some()) {
            let Some(takes) = dialect.min_tokens else { continue };
            assert_eq!(takes, names(dialect.engine, "min_tokens"), "{}", dialect.title);
        }
    }

    #[test]
    fn an_engine_is_found_by_what_it_says() {
        let found = |owner, header| Dialect::said_by(owner, header).map(|dialect| dialect.engine);
        assert_eq!(found("vllm", "uvicorn"), Some(Engine::Vllm));
        assert_eq!(found("sglang", "uvicorn"), Some(Engine::Sglang));
        assert_eq!(found("", "llama.cpp"), Some(Engine::Llamacpp));
        assert_eq!(found("system", "nginx"), None);
    }
}
