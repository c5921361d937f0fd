//! The options of `vllm bench serve` (docs.vllm.ai/en/latest/cli/bench/serve, its `serve.py` and
//! `datasets.py`) and of its predecessor `benchmark_serving.py`, with the number of words that each option
//! takes and how it is handled.

use crate::import::options::Arity::{Flag, Many, One};
use crate::import::options::Fate::{Lost, Needless, Read};
use crate::import::options::{FOLDER, Fate, Known, PERCENTILES, STORED};

const TOKENIZER: Fate = Needless("the files of `tokenizer:` define how texts are counted");
const SAMPLING: Fate = Lost("write it under `extra` of the scenario if the server accepts it");
const PLOTS: Fate = Needless("`sweepline export --rows requests` has the data for a plot");
const DATASET: Fate = Lost("`data: { file: FILE }` of a scenario reads a data set from a file, with `filter` and `as`");
const COME_AGAIN: Fate = Lost(
    "a run lasts for a set time: once all records of a data set are sent, they repeat; `preview` shows how often each \
     is sent",
);
const PICTURES: Fate = Lost("requests carry only text");
const RANKING: Fate = Needless("`api: embeddings` sends only texts, `api: rerank` a query with documents");

/// All known options.
pub(super) const OPTIONS: [Known; 105] = [
    // The server.
    ("backend", One, Read),
    ("endpoint-type", One, Read),
    ("base-url", One, Read),
    ("host", One, Read),
    ("port", One, Read),
    ("endpoint", One, Read),
    ("header", Many, Read),
    ("insecure", Flag, Read),
    ("ready-check-timeout-sec", One, Read),
    // The model.
    ("model", One, Read),
    ("served-model-name", One, Read),
    ("tokenizer", One, Read),
    ("tokenizer-mode", One, TOKENIZER),
    ("skip-tokenizer-init", Flag, TOKENIZER),
    ("trust-remote-code", Flag, TOKENIZER),
    (
        "lora-modules",
        Many,
        Lost("a scenario uses one adapter (`model: NAME`); a `mix` of scenarios divides the requests"),
    ),
    (
        "lora-assignment",
        One,
        Lost("a `mix` of scenarios, each with `model: NAME`, divides the requests by its weights"),
    ),
    // The load.
    ("num-prompts", One, Read),
    ("request-rate", One, Read),
    ("burstiness", One, Read),
    ("max-concurrency", One, Read),
    ("ramp-up-strategy", One, Read),
    ("ramp-up-start-rps", One, Read),
    ("ramp-up-end-rps", One, Read),
    ("num-warmups", One, Needless("load rises in `fill` and settles in `stabilize` before the measurement")),
    ("probe-request-rate", One, Lost("no second stream of requests runs alongside the load")),
    ("self-timed", Flag, Read),
    ("timed-trace-chunk-hash-size", One, Read),
    ("timed-trace-sec-multiplier", One, Read),
    ("no-self-timed", Flag, Needless("`qps` and `arrivals` set the arrivals")),
    ("seed", One, Read),
    // The content.
    ("ignore-eos", Flag, Read),
    ("temperature", One, Read),
    ("top-p", One, Read),
    ("presence-penalty", One, Read),
    ("frequency-penalty", One, Read),
    ("top-k", One, Read),
    ("min-p", One, Read),
    ("repetition-penalty", One, Read),
    ("use-beam-search", Flag, SAMPLING),
    ("best-of", One, SAMPLING),
    ("logprobs", One, SAMPLING),
    ("extra-body", One, Read),
    ("chat-template-kwargs", One, Read),
    ("request-id-prefix", One, Needless("each request has its own `x-request-id`")),
    // The report.
    ("goodput", Many, Read),
    ("metadata", Many, Read),
    ("label", One, Read),
    ("percentile-metrics", One, PERCENTILES),
    ("metric-percentiles", One, PERCENTILES),
    ("save-result", Flag, STORED),
    ("save-detailed", Flag, STORED),
    ("append-result", Flag, STORED),
    ("result-dir", One, FOLDER),
    ("result-filename", One, FOLDER),
    ("disable-tqdm", Flag, Needless("`sweepline run -q` is silent")),
    ("plot-timeline", Flag, PLOTS),
    ("timeline-itl-thresholds", One, PLOTS),
    ("plot-dataset-stats", Flag, PLOTS),
    ("profile", Flag, Lost("the server's profiler is not started")),
    ("config", One, Lost("options in this file are not read: pass them on the command line")),
    // The data set.
    ("dataset", One, Read),
    ("dataset-name", One, Read),
    ("dataset-path", One, Read),
    ("input-len", One, Read),
    ("output-len", One, Read),
    ("random-input-len", One, Read),
    ("random-output-len", One, Read),
    ("random-range-ratio", One, Read),
    ("random-prefix-len", One, Read),
    ("random-batch-size", One, Read),
    ("no-reranker", Flag, RANKING),
    ("random-mm-base-items-per-request", One, PICTURES),
    ("random-mm-num-mm-items-range-ratio", One, PICTURES),
    ("random-mm-limit-mm-per-prompt", One, PICTURES),
    ("random-mm-bucket-config", One, PICTURES),
    ("enable-multimodal-chat", Flag, PICTURES),
    ("sonnet-input-len", One, Read),
    ("sonnet-output-len", One, Read),
    ("sonnet-prefix-len", One, Read),
    ("prefix-repetition-prefix-len", One, Read),
    ("prefix-repetition-suffix-len", One, Read),
    ("prefix-repetition-num-prefixes", One, Read),
    ("prefix-repetition-output-len", One, Read),
    ("sharegpt-output-len", One, Read),
    ("custom-output-len", One, Read),
    ("hf-output-len", One, Read),
    ("spec-bench-output-len", One, Read),
    ("speed-bench-output-len", One, Read),
    ("spec-bench-category", One, DATASET),
    ("speed-bench-category", One, DATASET),
    ("speed-bench-dataset-subset", One, DATASET),
    ("hf-subset", One, Read),
    ("hf-split", One, Read),
    ("hf-name", One, DATASET),
    ("blazedit-min-distance", One, DATASET),
    ("blazedit-max-distance", One, DATASET),
    ("asr-min-audio-len-sec", One, DATASET),
    ("asr-max-audio-len-sec", One, DATASET),
    ("bfcl-categories", One, DATASET),
    ("custom-ensure-client-side-data", Flag, PICTURES),
    ("no-oversample", Flag, COME_AGAIN),
    ("no-stream", Flag, DATASET),
    ("disable-shuffle", Flag, Read),
    ("skip-chat-template", Flag, Read),
];
