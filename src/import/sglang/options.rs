//! The options of `sglang.bench_serving` (`python/sglang/benchmark/serving.py` of
//! github.com/sgl-project/sglang, 00f9ec47 of 2026, and `bench_serving.py` before it), with the number of
//! words that each option takes and how it is handled.

use crate::import::options::Arity::{Flag, Many, One};
use crate::import::options::Fate::{Lost, Needless, Read};
use crate::import::options::{Fate, Known};

const FOLDER: Fate = Needless("`sweepline run --results DIR` sets the results folder");
const STORED: Fate = Needless("every run is stored, one row per request");
const PICTURES: Fate = Lost("requests carry only text");
const PROFILER: Fate = Lost(
    "the server's profiler is not started; `hooks: { before_run: { request: POST /start_profile } }` of the endpoint \
     starts it",
);
const ADAPTERS: Fate = Lost("a scenario uses one adapter (`model: NAME`); a `mix` of scenarios divides the requests");
const LOGPROBS: Fate = Lost("`extra: { logprobs: 5 }` of the scenario requests them over the OpenAI API");
const DATASET: Fate = Lost("`data: { file: FILE }` of a scenario reads a data set from a file, with `filter` and `as`");

/// All known options.
pub(super) const OPTIONS: [Known; 86] = [
    // The server.
    ("backend", One, Read),
    ("base-url", One, Read),
    ("host", One, Read),
    ("port", One, Read),
    ("ready-check-timeout-sec", One, Read),
    ("header", Many, Read),
    ("pd-separated", Flag, Needless("the router of separate prefill and decode servers is used like any server")),
    ("fake-prefill", Flag, Lost("a decode server without a prefill server is not measured")),
    ("flush-cache", Flag, Read),
    ("flush-cache-timeout", One, Needless("the plan waits up to a minute until the server is idle")),
    // The model.
    ("model", One, Read),
    ("served-model-name", One, Read),
    ("tokenizer", One, Read),
    ("lora-name", Many, Read),
    ("lora-request-distribution", One, ADAPTERS),
    ("lora-zipf-alpha", One, ADAPTERS),
    // The load.
    ("num-prompts", One, Read),
    ("request-rate", One, Read),
    ("request-rate-range", One, Read),
    ("max-concurrency", One, Read),
    ("multi", Flag, Read),
    ("warmup-requests", One, Needless("load rises in `fill` and settles in `stabilize` before the measurement")),
    ("use-trace-timestamps", Flag, Read),
    ("mooncake-slowdown-factor", One, Read),
    ("mooncake-num-rounds", One, Lost("a trace's requests are sent once each, not as rounds of a conversation")),
    ("mooncake-workload", One, Read),
    ("seed", One, Read),
    // The content.
    ("disable-ignore-eos", Flag, Read),
    ("disable-stream", Flag, Read),
    ("temperature", One, Read),
    ("top-p", One, Read),
    ("extra-request-body", One, Read),
    ("apply-chat-template", Flag, Read),
    ("prompt-suffix", One, Lost("texts are sent unchanged; write it into the data set")),
    ("tokenize-prompt", Flag, Needless("lengths are exact with the model's `tokenizer`, and requests contain text")),
    ("return-logprob", Flag, LOGPROBS),
    ("top-logprobs-num", One, LOGPROBS),
    ("token-ids-logprob", Many, LOGPROBS),
    ("logprob-start-len", One, LOGPROBS),
    ("return-routed-experts", Flag, Lost("the experts that responded are not requested")),
    // The data set.
    ("dataset-name", One, Read),
    ("dataset-path", One, Read),
    ("dataset-offset", One, DATASET),
    ("agentic-max-turns", One, DATASET),
    ("speed-bench-category", One, DATASET),
    ("speed-bench-output-len", One, DATASET),
    ("sharegpt-output-len", One, Read),
    ("sharegpt-context-len", One, Read),
    ("random-input-len", One, Read),
    ("random-output-len", One, Read),
    ("random-range-ratio", One, Read),
    ("gsp-num-groups", One, Read),
    ("gsp-prompts-per-group", One, Read),
    ("gsp-system-prompt-len", One, Read),
    ("gsp-question-len", One, Read),
    ("gsp-output-len", One, Read),
    ("gsp-range-ratio", One, Read),
    ("gsp-num-turns", One, Read),
    ("gsp-group-distribution", One, Read),
    ("gsp-zipf-alpha", One, Read),
    ("gsp-ordered", Flag, Lost("each request draws its group; `prefix: { order: cycle }` uses the groups in turn")),
    ("gsp-fast-prepare", Flag, Needless("prompts are made before the run begins")),
    (
        "gsp-send-routing-key",
        Flag,
        Lost("headers are the same for all requests of a scenario: `headers` of the scenario or endpoint"),
    ),
    ("image-count", One, PICTURES),
    ("image-resolution", One, PICTURES),
    ("image-format", One, PICTURES),
    ("image-content", One, PICTURES),
    ("random-image-count", Flag, PICTURES),
    // The report.
    ("tag", One, Read),
    ("output-file", One, FOLDER),
    ("output-details", Flag, STORED),
    ("print-requests", Flag, Needless("`record: { text: true }` keeps the texts of a run")),
    ("disable-tqdm", Flag, Needless("`sweepline run -q` is silent")),
    ("plot-throughput", Flag, Needless("`sweepline show RUN` and `report` plot a run over time")),
    ("cache-report", Flag, Needless("cached tokens that the server reports are stored with each request")),
    ("profile", Flag, PROFILER),
    ("profile-activities", Many, PROFILER),
    ("profile-start-step", One, PROFILER),
    ("profile-steps", One, PROFILER),
    ("profile-num-steps", One, PROFILER),
    ("profile-by-stage", Flag, PROFILER),
    ("profile-stages", Many, PROFILER),
    ("profile-output-dir", One, PROFILER),
    ("profile-prefix", One, PROFILER),
    ("profile-prefill-url", Many, PROFILER),
    ("profile-decode-url", Many, PROFILER),
];
