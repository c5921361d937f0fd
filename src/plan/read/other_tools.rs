//! Words from other tools: names that users of vLLM's benchmark, GuideLLM, GenAI-Perf, k6, Locust or
//! MLPerf may type, and their equivalents in a plan. They are used only after a key turns out to be
//! unknown.

use crate::plan::model::axis;
use crate::plan::text::tree::Step;

/// The equivalent of a word from another tool.
enum Here {
    /// An axis, and usually also a field of a scenario.
    Axis(&'static str),
    /// A key of the same table.
    Key(&'static str),
    /// Something that a plan expresses differently, with the remedy.
    Said(&'static str),
}

use Here::{Axis, Key, Said};

const RATE: Here = Axis("qps");
const IN_FLIGHT: Here = Axis("batch_size");
const WINDOW: Here = Said("set the length of the window with `phases: { measure: 120s }`");
const RISE: Here =
    Said("the load rises in `fill` and settles in `stabilize`; write phases: { fill: 30s, stabilize: 60s }");
const COUNT: Here = Said(
    "a run has a fixed duration; to wait for a number of requests, write phases: { measure: { for: 60s, min_requests: \
     1000 } }",
);
const POINTS: Here = Said(
    "write the load points as an axis, like matrix: { batch_size: [1, 8] } for a closed loop, or { qps: [1, 2] } for \
     an open loop",
);
const PROMPTS: Here =
    Said("sweepline generates the prompts; set their length with `prompt_tokens` and `output_tokens` of a scenario");
const RESULTS: Here = Said("results are written to the folder given by `sweepline run --results DIR`; remove this key");
const SPREAD: Here = Said(
    "varying lengths go under `lengths`: { prompt: { normal: { mean: 512, sd: 64, min: 64, max: 1024 } }, output: \
     128 }",
);
const SERVER: Here = Said(
    "to vary a flag of a server that the plan launches, use an axis `server.FLAG`; define servers that are already \
     running as separate endpoints, and describe each of them in its `server: { … }`",
);
const PRECISION: Here = Said("set the precision of a model with `precision: bf16`");

/// Words as returned by [`folded`], each with its equivalent.
const WORDS: &[(&[&str], Here)] = &[
    (&["rate", "rates", "rps", "target_qps", "queries_per_second", "request_rates", "arrival_rate"], RATE),
    (
        &[
            "users",
            "num_users",
            "vus",
            "clients",
            "num_clients",
            "parallel",
            "parallelism",
            "max_concurrency",
            "concurrencies",
            "concurrent_requests",
            "num_concurrent_requests",
            "concurrency_level",
            "streams",
            "batch_sizes",
            "batch",
        ],
        IN_FLIGHT,
    ),
    (
        &[
            "input_len",
            "input_length",
            "input_tokens",
            "isl",
            "random_input_len",
            "prompt_len",
            "prompt_length",
            "synthetic_input_tokens_mean",
            "num_input_tokens",
            "mean_input_tokens",
        ],
        Axis("prompt_tokens"),
    ),
    (
        &[
            "output_len",
            "output_length",
            "max_tokens",
            "osl",
            "random_output_len",
            "max_new_tokens",
            "max_output_tokens",
            "output_tokens_mean",
            "num_output_tokens",
            "mean_output_tokens",
            "completion_tokens",
        ],
        Axis("output_tokens"),
    ),
    (&["burstiness", "arrival", "arrival_process", "distribution"], Axis("arrivals")),
    (&["prefix_len", "random_prefix_len", "system_prompt_tokens", "shared_prefix_tokens"], Axis("system_tokens")),
    (
        &[
            "duration",
            "run_time",
            "max_seconds",
            "min_duration",
            "measure_seconds",
            "measurement_interval",
            "test_duration",
            "benchmark_duration",
        ],
        WINDOW,
    ),
    (
        &[
            "warmup",
            "warm_up",
            "warmups",
            "num_warmups",
            "warmup_percent",
            "warmup_requests",
            "warmup_seconds",
            "stabilize_seconds",
            "ramp_up",
            "ramp_up_time",
            "rampup",
            "spawn_rate",
            "hatch_rate",
        ],
        RISE,
    ),
    (
        &["cooldown", "cool_down", "cooldown_percent"],
        Said("set the pause between two runs with `between: { cooldown: 10s }`"),
    ),
    (
        &["num_prompts", "num_requests", "request_count", "max_requests", "total_requests", "n_requests", "requests"],
        COUNT,
    ),
    (&["executor", "stages", "rate_type", "profile", "load_shape"], POINTS),
    (&["data", "dataset", "dataset_name", "dataset_path", "prompt", "prompts", "input_file"], PROMPTS),
    (&["preset", "shape"], Said("write `lengths: { preset: chat }`, or add `base: lengths`")),
    (&["std", "stddev", "std_dev", "stdev", "deviation"], Key("sd")),
    (&["output_dir", "output_path", "result_dir", "results_dir", "save_result", "results"], RESULTS),
    (&["output_tokens_stddev", "synthetic_input_tokens_stddev", "prompt_tokens_stddev", "random_range_ratio"], SPREAD),
    (&["tensor_parallel", "tensor_parallel_size", "tp", "pipeline_parallel", "max_num_seqs", "quantization"], SERVER),
    (&["base_url", "host", "address", "server_url", "endpoint_url", "uri"], Key("url")),
    (
        &["target"],
        Said("write the address as the `url` of an endpoint, like endpoints: { NAME: { url: http://HOST:PORT/v1 } }"),
    ),
    (&["backend", "framework", "server_type"], Said("`engine` names the server software, `api` the kind of request")),
    (&["token", "key", "auth"], Key("api_key")),
    (&["env"], Said("write { secret: env:NAME } with the name of the variable")),
    (&["file"], Said("write { secret: file:PATH } with a path in the plan's folder")),
    (&["gpu_count", "num_gpus", "n_gpus"], Key("gpus")),
    (&["dtype", "data_type", "torch_dtype"], PRECISION),
    (&["depends_on", "needs", "requires"], Key("after")),
    (&["runs", "num_runs", "iterations", "trials"], Key("repeats")),
    (&["excludes", "ignore"], Key("exclude")),
    (&["axes", "params", "parameters"], Key("matrix")),
    (&["thresholds", "sla", "slos", "objectives"], Key("slo")),
    (&["version", "api_version"], Said("`sweepline: 1` sets the version of the plan format")),
    (&["p999"], Key("p99.9")),
    (&["median"], Key("p50")),
];

fn folded(key: &str) -> String {
    key.to_lowercase().replace('-', "_")
}

/// The remedy for a key that is unknown under `parents`, if another tool uses this key. `known` lists the keys
/// that are allowed there.
pub(crate) fn remedy(parents: &[Step], key: &str, known: &[&str]) -> Option<String> {
    let key = folded(key);
    let (_, here) = WORDS.iter().find(|(words, _)| words.contains(&key.as_str()))?;
    match here {
        Axis(name) | Key(name) if known.contains(name) => Some(format!("did you mean `{name}`?")),
        Axis(name) if parents.len() <= 2 => Some(axis_remedy(name)),
        Said(words) if parents.len() <= 3 => Some((*words).to_owned()),
        _ => None,
    }
}

/// Words that users write instead of the keys of a range, of bounds, and of a value with a condition.
const RANGE_WORDS: &[(&[&str], &str)] = &[
    (&["by", "increment", "inc", "stride", "every", "interval", "delta"], "step"),
    (&["factor", "multiply", "multiplier", "mul", "ratio", "base"], "times"),
    (&["start", "begin", "min", "minimum", "low", "gte", "least"], "from"),
    (&["stop", "end", "until", "through", "max", "maximum", "high", "upto", "lte", "most"], "to"),
    (&["values"], "value"),
    (&["if", "where", "only", "unless"], "when"),
];

/// Whether the keys allowed at a place are the keys of a table on an axis.
pub(crate) fn is_axis_table(known: &[&str]) -> bool {
    known.contains(&"zip")
}

/// Whether `word` is a different word for `key`, which is a key of a range, of bounds or of a condition.
pub(crate) fn stands_for(word: &str, key: &str) -> bool {
    RANGE_WORDS.iter().any(|(words, own)| *own == key && words.contains(&folded(word).as_str()))
}

/// The remedy for an unknown key in a table whose allowed keys are `known`, if the key is another word for a
/// key of a range, of bounds or of a condition.
pub(crate) fn range_key(key: &str, known: &[&str]) -> Option<String> {
    let key = folded(key);
    if is_axis_table(known) && ["double", "doubling", "log2", "geometric"].contains(&key.as_str()) {
        return Some("write `times: 2`".to_owned());
    }
    let (_, own) = RANGE_WORDS.iter().find(|(words, own)| words.contains(&key.as_str()) && known.contains(own))?;
    // Words such as `max` have other meanings elsewhere.
    if !known.contains(&"from") && *own != "when" {
        return None;
    }
    Some(format!("did you mean `{own}`?"))
}

/// The remedy for a matrix key that is not an axis, if another tool uses this key.
pub(crate) fn axis_of(key: &str) -> Option<String> {
    let key = folded(key);
    if let Some(first) = axis::first_name(&key) {
        return Some(format!("did you mean `{first}`?"));
    }
    match WORDS.iter().find(|(words, _)| words.contains(&key.as_str()))? {
        (_, Axis(name)) => Some(format!("did you mean `{name}`?")),
        (_, Said(words)) => Some((*words).to_owned()),
        (_, Key(_)) => None,
    }
}

/// The remedy for an axis that is written in the wrong place.
pub(crate) fn axis_remedy(axis: &str) -> String {
    format!("`{axis}` is an axis: write it under `matrix:` of a sweep")
}

/// The remedy for a key of `slo` such as `ttft_p99` or `p99_ttft`; `None` for other keys.
pub(crate) fn objective(key: &str) -> Option<String> {
    let (first, last) = key.split_once('_')?;
    let (metric, percentile) = if last.starts_with('p') { (first, last) } else { (last, first) };
    let is_percentile = percentile.strip_prefix('p').is_some_and(|rest| rest.parse::<f64>().is_ok());
    let is_metric = ["ttft", "itl", "tpot", "e2e"].contains(&metric);
    (is_metric && is_percentile).then(|| format!("write {metric}: {{ {percentile}: … }}"))
}
