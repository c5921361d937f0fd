//! What the rules say of themselves. `docs/LINT.md` and the pages of `explain` are made from these words, and the examples
//! are run by the tests: each wrong one gives its code, each right one does not.

/// What a rule says of itself.
#[derive(Debug, Clone, Copy)]
pub struct LintText {
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// When it is said, with its thresholds.
    pub when: &'static str,
    /// Why it matters.
    pub reason: &'static str,
    /// Who says so: a paper, a tool's documentation, a section of METRICS.
    pub source: &'static str,
    /// A plan, or the part of one that matters, about which it is said.
    pub wrong: &'static str,
    /// The same as it should be.
    pub right: &'static str,
    /// Codes that are about something near.
    pub related: &'static str,
}

pub(crate) const WARM_UP: LintText = LintText {
    title: "the warm-up is too short",
    when: "`fill` and `stabilize` last less than 30 s together, or the smallest load sends fewer than 50 requests in them. \
           In a closed loop the number is an estimate: batch size × time / (output tokens × 20 ms).",
    reason: "The first requests of a run compile kernels, fill the KV cache and open connections; the start-up burst of a \
             closed loop runs in step until it has spread out. What is measured meanwhile is the start, not the service, and \
             it lands in the tail.",
    source: "AIPerf, documentation, Warmup Phase Configuration (cold-start effects; its example warms up with 50 requests). \
             evalscope issue 1627: start-up burst and drain pollute p99.",
    wrong: "\
phases: { fill: 5s, stabilize: 10s }
sweeps:
  load: { matrix: { batch_size: [8, 32] } }
",
    right: "\
phases: { fill: 30s, stabilize: 60s }
sweeps:
  load: { matrix: { batch_size: [8, 32] } }
",
    related: "M005, M006",
};

pub(crate) const CLOSED_LOOP_ONLY: LintText = LintText {
    title: "latency is promised and only closed loops are run",
    when: "`slo`, `goodput` or `compare` speaks of a latency, and no sweep has a `qps` axis.",
    reason: "A closed loop sends its next request when an answer has come, so a slow server is asked less often and hides its \
             own queue. Users do not wait for each other: the latency that an SLO promises is that of an open loop.",
    source: "B. Schroeder, A. Wierman, M. Harchol-Balter: Open Versus Closed: A Cautionary Tale, NSDI 2006.",
    wrong: "\
slo: { ttft: { p99: 500ms } }
sweeps:
  load: { matrix: { batch_size: [8, 32, 128] } }
",
    right: "\
slo: { ttft: { p99: 500ms } }
sweeps:
  load: { matrix: { batch_size: [8, 32, 128] } }
  rates: { matrix: { qps: [5, 10, 20] } }
",
    related: "M003, M019",
};

pub(crate) const ONE_LOAD: LintText = LintText {
    title: "an endpoint is measured at one load only",
    when: "All sweeps together measure an endpoint at a single batch size or rate.",
    reason: "Latency and throughput are functions of the load. One point does not say on which side of the knee it lies, and \
             two servers compared at one point may change places at the next.",
    source: "W. Kwon et al.: Efficient Memory Management for Large Language Model Serving with PagedAttention, SOSP 2023: every \
             system is shown over a range of request rates.",
    wrong: "\
sweeps:
  load: { matrix: { qps: [10] } }
",
    right: "\
sweeps:
  load: { matrix: { qps: [5, 10, 20] } }
",
    related: "M002, M004",
};

pub(crate) const ONE_LENGTH: LintText = LintText {
    title: "all requests have the same lengths",
    when: "Every cell of every sweep has the same number of prompt tokens and of output tokens, and no conversations.",
    reason: "Prefill is bound by computing and decode by memory, so another ratio of prompt to output is another workload: \
             what is found at one pair of lengths does not carry over.",
    source: "A. Agrawal et al.: Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve, OSDI 2024, on prefill \
             and decode.",
    wrong: "\
sweeps:
  load: { matrix: { scenario: [B1], batch_size: [8, 32] } }
",
    right: "\
sweeps:
  load: { matrix: { scenario: [B1, B2], batch_size: [8, 32] } }
",
    related: "M003, M009",
};

pub(crate) const FEW_REQUESTS: LintText = LintText {
    title: "too few requests for the percentile",
    when: "A load expects fewer requests in its window than the highest percentile of `slo` and `compare` needs for a 95 % \
           interval (p99 where neither names one; of a metric without a percentile, and of the usual ones, `compare` reads p50 \
           and p99): 6 for p50, 13 for p75, 36 for p90, 72 for p95, 368 for p99, 3 688 for p99.9. \
           Open loops: rate × window. Closed loops: batch size × window / (output tokens × 20 ms), an estimate. Where an SLO \
           cannot even be decided, M019 speaks.",
    reason: "Of 120 requests the 99th percentile lies between the third and the second largest, and its interval has no upper \
             end: the result prints `n/a`, after the hours have been spent. These are independent requests. Where they wait for \
             each other a run takes more, which shows in its intervals.",
    source: "docs/METRICS.md, Metrics of one run, and Dependence. MLPerf Inference asks for far more: \
             270 336 queries for a p99 (mlperf.conf, Server.min_query_count).",
    wrong: "\
phases: { measure: 120s }
sweeps:
  rates: { matrix: { qps: [1, 10] } }
",
    right: "\
phases: { measure: 368s }
sweeps:
  rates: { matrix: { qps: [1, 10] } }
",
    related: "M006, M019",
};

pub(crate) const SHORT_WINDOW: LintText = LintText {
    title: "the measure window is short",
    when: "`measure` is shorter than 60 s.",
    reason: "Batches, cache evictions, clock rates and neighbours change over tens of seconds. A window shorter than that \
             measures one of these states and calls it the service.",
    source: "MLPerf Inference (mlperf.conf, min_duration) measures for at least 600 s in every scenario; 60 s is a tenth of \
             it.",
    wrong: "\
phases: { measure: 20s }
",
    right: "\
phases: { measure: 120s }
",
    related: "M001, M005",
};

pub(crate) const NO_REPEATS: LintText = LintText {
    title: "a comparison without repeats",
    when: "`compare` is declared for a sweep whose `repeats` is below 3.",
    reason: "Requests of one run share one server, one hour and one cache, so their spread says nothing of the next run's. \
             Between two runs the 95 % interval of a mean (Student's t) reaches 9 standard deviations to each side, with three \
             2.5, with five 1.2; with one there is none.",
    source: "T. Hoefler, R. Belli: Scientific Benchmarking of Parallel Computing Systems, SC 2015. G. Heiser: Systems \
             Benchmarking Crimes (no indication of the significance of data).",
    wrong: "\
sweeps:
  load:
    matrix: { batch_size: [8, 32] }
    compare: { by: batch_size, baseline: 8 }
",
    right: "\
sweeps:
  load:
    matrix: { batch_size: [8, 32] }
    compare: { by: batch_size, baseline: 8 }
    repeats: 5
",
    related: "M008, M014",
};

pub(crate) const SEVERAL_VARIABLES: LintText = LintText {
    title: "compared cells differ in several things",
    when: "`compare` sets a value beside the baseline that differs in more than the axis: endpoints in engine, api, hardware, \
           server facts and flags (of another engine its own do not count, parallelism, quantization, dtype and context \
           length do; of another number of accelerators its parallelism does not) and in the id of a model for each engine \
           (owner, case and punctuation aside); models in parameters and precision; scenarios in what requests share, \
           lengths and sampling; and cells in whatever a zip, a `when` or `extend` gives one side only.",
    reason: "When two things change at once, no number of repeats tells which of them made the difference.",
    source: "R. Jain: The Art of Computer Systems Performance Analysis, 1991, part IV, on confounded effects.",
    wrong: "\
endpoints:
  old: { url: \"http://a:8000/v1\", engine: vllm, server: { version: 0.32.0, flags: { max_num_seqs: 128 } } }
  new: { url: \"http://b:8000/v1\", engine: vllm, server: { version: 0.33.0, flags: { max_num_seqs: 256 } } }
sweeps:
  load: { matrix: { endpoint: [old, new], batch_size: [8, 32] }, repeats: 3 }
compare: { by: endpoint, baseline: old }
",
    right: "\
endpoints:
  old: { url: \"http://a:8000/v1\", engine: vllm, server: { version: 0.32.0, flags: { max_num_seqs: 256 } } }
  new: { url: \"http://b:8000/v1\", engine: vllm, server: { version: 0.33.0, flags: { max_num_seqs: 256 } } }
sweeps:
  load: { matrix: { endpoint: [old, new], batch_size: [8, 32] }, repeats: 3 }
compare: { by: endpoint, baseline: old }
",
    related: "M007, M014, M015",
};

pub(crate) const MIXED_CACHE: LintText = LintText {
    title: "cold and warm prefix caches in one sweep",
    when: "A sweep has scenarios whose requests share text (A, C, D) beside scenarios whose requests share none (B). Data sets and \
           traces without a nonce of each prompt (`nonce: run`, `off`) are neither: what they share only the records know.",
    reason: "A prefix cache answers the first kind and not the second: vLLM users saw up to 86 % more throughput from a cache \
             that was warm by accident. Each cell is right; a mean or a chart over both says nothing of either.",
    source: "vLLM issue 52884.",
    wrong: "\
sweeps:
  load: { matrix: { scenario: [B1, C], batch_size: [8, 32] } }
",
    right: "\
sweeps:
  cold: { matrix: { scenario: [B1, B2], batch_size: [8, 32] } }
  shared: { matrix: { scenario: [C], batch_size: [8, 32] } }
",
    related: "M004, M010",
};

pub(crate) const SAME_PROMPTS: LintText = LintText {
    title: "prompts come again where none are meant to",
    when: "`nonce: off`, and a scenario other than the same prompt every time (A).",
    reason: "Texts derive from seed, scenario and repeat, so that endpoints and loads get the same ones. Without the nonce in \
             front the second load point sends what the first one sent, and finds it in the server's prefix cache. With \
             `nonce: run` all prompts of an attempt open alike: what recorded texts share stays, and no other run has it.",
    source: "vLLM issue 52884: the same seed twice met a warm prefix cache, up to 86 % more throughput.",
    wrong: "\
nonce: off
sweeps:
  load: { matrix: { scenario: [B1], batch_size: [8, 32] } }
",
    right: "\
nonce: off
sweeps:
  best_case: { matrix: { scenario: [A1, A2], batch_size: [8, 32] } }
",
    related: "M009",
};

pub(crate) const HARDWARE: LintText = LintText {
    title: "the hardware is not disclosed",
    when: "An endpoint that is no mock does not say gpu, gpus, memory, interconnect (with more than one accelerator), network \
           or storage. As a note: it says `unknown`, which is disclosed, and equal to nothing.",
    reason: "Nobody can repeat a result, or divide it by anything, without knowing what it was measured on; the memory \
             decides how many requests fit, the network is in every latency.",
    source: "MLPerf Inference, system description of a submission (accelerator_model_name, accelerators_per_node, \
             accelerator_memory_capacity, accelerator_interconnect, host_networking, host_storage_type). G. Heiser: Systems \
             Benchmarking Crimes (missing specification of the platform).",
    wrong: "\
endpoints:
  vllm: { url: \"http://node-a:8000/v1\", engine: vllm, hardware: { gpu: H100-SXM-80GB, gpus: 8 } }
",
    right: "\
endpoints:
  vllm:
    url: http://node-a:8000/v1
    engine: vllm
    hardware:
      { gpu: H100-SXM-80GB, gpus: 8, memory: 80GB HBM3, interconnect: nvlink, network: 25GbE, storage: local NVMe }
",
    related: "M012, M013, M017",
};

pub(crate) const SERVER: LintText = LintText {
    title: "how the server runs is not disclosed",
    when: "An endpoint that is no mock does not say version, tensor_parallel, pipeline_parallel, attention_backend, scheduler \
           or flags. The engines' own names of these count too, at the top of `server` or among its flags. As a note: \
           one is `unknown`.",
    reason: "The version and a handful of settings can change a result more than the axes of a sweep do, and in half a year \
             nobody remembers them. They are part of a run's identity: with them a restarted server gets results of its own.",
    source: "guidellm issue 166: server configuration not recorded with the result.",
    wrong: "\
endpoints:
  vllm: { url: \"http://node-a:8000/v1\", engine: vllm, server: { version: 0.33.0 } }
",
    right: "\
endpoints:
  vllm:
    url: http://node-a:8000/v1
    engine: vllm
    server:
      version: 0.33.0
      tensor_parallel: 8
      pipeline_parallel: 1
      attention_backend: flashinfer
      scheduler: chunked_prefill
      flags: { max_num_seqs: 256 }
",
    related: "M011, M014, M016",
};

pub(crate) const PRECISION: LintText = LintText {
    title: "the precision of the weights is not disclosed",
    when: "A model that is measured on an endpoint that is no mock has no `precision`. As a note: it is `unknown`.",
    reason: "Weights of half the size are read in half the time: fp8 beside bf16 is another model, not another server.",
    source: "T. Hoefler, R. Belli: Scientific Benchmarking of Parallel Computing Systems, SC 2015, on documenting all factors.",
    wrong: "\
endpoints: { vllm: { url: \"http://node-a:8000/v1\", engine: vllm } }
models: { llama: { id: meta-llama/Llama-3.1-8B-Instruct } }
",
    right: "\
endpoints: { vllm: { url: \"http://node-a:8000/v1\", engine: vllm } }
models: { llama: { id: meta-llama/Llama-3.1-8B-Instruct, precision: bf16 } }
",
    related: "M011, M012",
};

pub(crate) const UNEQUAL_TUNING: LintText = LintText {
    title: "endpoints side by side were not tuned alike",
    when: "A sweep has several endpoints that are no mocks, and one says server facts or flags that another does not: of one \
           engine any of them, of two engines any at all.",
    reason: "A server with chosen flags against one with defaults compares the care of their owners.",
    source: "G. Heiser: Systems Benchmarking Crimes (unfair benchmarking of competitors).",
    wrong: "\
endpoints:
  a: { url: \"http://a:8000/v1\", engine: vllm, server: { flags: { max_num_seqs: 512, enable_prefix_caching: true } } }
  b: { url: \"http://b:8000/v1\", engine: vllm, server: { flags: { max_num_seqs: 256 } } }
sweeps:
  load: { matrix: { endpoint: [a, b], batch_size: [8, 32] } }
",
    right: "\
endpoints:
  a: { url: \"http://a:8000/v1\", engine: vllm, server: { flags: { max_num_seqs: 512, enable_prefix_caching: true } } }
  b: { url: \"http://b:8000/v1\", engine: vllm, server: { flags: { max_num_seqs: 256, enable_prefix_caching: true } } }
sweeps:
  load: { matrix: { endpoint: [a, b], batch_size: [8, 32] } }
",
    related: "M008, M012, M015",
};

pub(crate) const UNEQUAL_ACCELERATORS: LintText = LintText {
    title: "different numbers of accelerators side by side",
    when: "A sweep has endpoints with different `gpus`, and no `compare` that holds there has a metric per accelerator or per \
           money (a `compare` without `metrics` has throughput per accelerator).",
    reason: "Twice the accelerators give about twice the throughput; what is left to compare is what one of them does.",
    source: "Y. Zhong et al.: DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model Serving, \
             OSDI 2024, which compares goodput per GPU. docs/METRICS.md, Metrics of one run (per GPU).",
    wrong: "\
endpoints:
  a: { url: \"http://a:8000/v1\", engine: vllm, hardware: { gpus: 8 } }
  b: { url: \"http://b:8000/v1\", engine: sglang, hardware: { gpus: 4 } }
sweeps:
  load: { matrix: { endpoint: [a, b], batch_size: [8, 32] } }
",
    right: "\
endpoints:
  a: { url: \"http://a:8000/v1\", engine: vllm, hardware: { gpus: 8 } }
  b: { url: \"http://b:8000/v1\", engine: sglang, hardware: { gpus: 4 } }
sweeps:
  load: { matrix: { endpoint: [a, b], batch_size: [8, 32] }, repeats: 3 }
compare: { by: endpoint, baseline: a, metrics: [output_throughput_per_gpu] }
",
    related: "M008, M014",
};

pub(crate) const VERBOSE_LOGS: LintText = LintText {
    title: "the server logs every request",
    when: "Server facts or flags set a log level of debug or trace, switch request logs on (enable_log_requests, log_requests, \
           verbose, …) or leave them on (disable_log_requests: false; a vLLM before 0.10 without disable_log_requests). The \
           version counts only as a text: as a number \"0.10\" would be 0.1, so write it in quotes.",
    reason: "A line for each request, with its prompt, is work of the same process that answers, and it grows with the load.",
    source: "vLLM issue 1240 and pull request 21739, which made request logs an option that is off by default.",
    wrong: "\
endpoints:
  vllm: { url: \"http://node-a:8000/v1\", engine: vllm, server: { version: 0.33.0, flags: { enable_log_requests: true } } }
",
    right: "\
endpoints:
  vllm: { url: \"http://node-a:8000/v1\", engine: vllm, server: { version: 0.33.0, flags: {} } }
",
    related: "M012",
};

pub(crate) const ONE_HOST: LintText = LintText {
    title: "client and server on one host",
    when: "The URL of an endpoint that is no mock leads to localhost or a loopback address, and `hardware: { network: … }` \
           says neither loopback nor tunnel, proxy or port forwarding.",
    reason: "The load generator takes cores, memory and caches from the server, more of them at higher load, and there is no \
             network in the latency. It may be what you want; a reader of the result has to know.",
    source: "vLLM issue 39963 and inference-perf issue 86: the client became the bottleneck.",
    wrong: "\
endpoints:
  vllm: { url: \"http://127.0.0.1:8000/v1\", engine: vllm }
",
    right: "\
endpoints:
  vllm: { url: \"http://127.0.0.1:8000/v1\", engine: vllm, hardware: { network: loopback } }
",
    related: "M011, M018",
};

pub(crate) const BEYOND_CALIBRATION: LintText = LintText {
    title: "a load beyond what this host was calibrated for",
    when: "The results folder (`--results`) holds a calibration of this host, and a batch size, or a rate and its tokens, is \
           above everything that it measured with an error below 1 ms. Without a calibration of this host nothing is said.",
    reason: "Above the load that `calibrate` showed to hold, the generator's own delay may be part of every latency.",
    source: "docs/METRICS.md, Calibration.",
    wrong: "\
sweeps:
  load: { matrix: { batch_size: [8, 100000] } }
",
    right: "\
sweeps:
  load: { matrix: { batch_size: [8, 32] } }
",
    related: "M017",
};

pub(crate) const UNDECIDABLE_SLO: LintText = LintText {
    title: "the SLO cannot be decided",
    when: "A load expects fewer requests in its window than it takes to decide the highest percentile of `slo` at 95 %: 29 for \
           p90, 59 for p95, 299 for p99, 2 995 for p99.9. Expected as in M005.",
    reason: "Whether a limit on p99 holds is a test: with fewer than 299 requests not even a run without any request above the \
             limit shows it. The answer will be `undecided`, and undecided is never counted as held. These are independent \
             requests. Where they wait for each other a run takes more, and says which window would do.",
    source: "docs/METRICS.md, Dependence.",
    wrong: "\
slo: { ttft: { p99: 500ms } }
phases: { measure: 120s }
sweeps:
  rates: { matrix: { qps: [1, 10] } }
",
    right: "\
slo: { ttft: { p99: 500ms } }
phases: { measure: 368s }
sweeps:
  rates: { matrix: { qps: [1, 10] } }
",
    related: "M002, M005",
};

pub(crate) const TOTAL_TOKENS: LintText = LintText {
    title: "total tokens asked for as capacity",
    when: "`hypothesis` or `notes`, of the plan or of a sweep, speak of total tokens or total throughput as a rate. (A \
           `compare` by such a metric is refused: there is none.)",
    reason: "Prompt tokens are computed in parallel and many come from a cache, output tokens one after the other: their sum \
             grows with longer prompts while every user waits longer.",
    source: "docs/METRICS.md, Metrics of one run: prompt throughput is never added to output throughput.",
    wrong: "\
hypothesis: The node serves 40 000 total tokens per second.
",
    right: "\
hypothesis: The node serves 4 000 output tokens per second with prompts of 2 500 tokens.
",
    related: "M004, M009",
};

pub(crate) const IDLE_ALLOW: LintText = LintText {
    title: "an `allow` that allows nothing",
    when: "An entry of `allow` names a rule that finds nothing where it stands. M018 is left alone on hosts without a \
           calibration.",
    reason: "An opt-out that is no longer needed hides the next mistake of its kind.",
    source: "sweepline's own.",
    wrong: "\
allow: [{ code: M006, because: a first look }]
phases: { measure: 120s }
",
    right: "\
allow: [{ code: M006, because: a first look }]
phases: { measure: 20s }
",
    related: "M006",
};

pub(crate) const NEVER_USED: LintText = LintText {
    title: "a scenario that is declared and never used",
    when: "No sweep has the scenario on its `scenario` axis (a plan's only one is there without being named), no scenario in use \
           has it as its `base`, and no mix in use has a share of it. As a note: the same of an endpoint or a model. Of what comes \
           from a fragment nothing is said: several plans share it.",
    reason: "Whoever reads the plan takes what it declares for what was measured. A scenario that nobody sends is mostly a name \
             that was forgotten on the axis, and the numbers are then those of other requests.",
    source: "sweepline's own: docs/PLAN.md, The matrix.",
    wrong: "\
scenarios: { short: { prompt_tokens: 50 }, long: { prompt_tokens: 4000 } }
sweeps:
  load: { matrix: { scenario: short, qps: [5, 10] } }
",
    right: "\
scenarios: { short: { prompt_tokens: 50 }, long: { prompt_tokens: 4000 } }
sweeps:
  load: { matrix: { scenario: [short, long], qps: [5, 10] } }
",
    related: "M004, M023",
};

pub(crate) const ESTIMATED_LENGTHS: LintText = LintText {
    title: "lengths in tokens without the model's tokenizer",
    when: "A model that is measured on an endpoint that is no mock has no `tokenizer`, and a scenario of it has its lengths from the \
           plan, a profile or a trace (texts of a data set are as long as they are).",
    reason: "Four characters to a token are an estimate. English prose has more in common vocabularies, 4.8 in cl100k_base and \
             o200k_base: prompts come out 12-18 % shorter than declared, and with small vocabularies they are up to 36 % off. Two \
             models with different tokenizers are then sent prompts of different lengths, and a cost or a rate per prompt token \
             is one of another workload.",
    source: "Measured over our own prompts: src/workload/tokens.rs, docs/WORKLOADS.md, Who counts. Each run says by how much in \
             the verdict's prompt_length.",
    wrong: "\
endpoints: { vllm: { url: \"http://node-a:8000/v1\", engine: vllm } }
models: { llama: { id: meta-llama/Llama-3.1-8B-Instruct } }
",
    right: "\
endpoints: { vllm: { url: \"http://node-a:8000/v1\", engine: vllm } }
models: { llama: { id: meta-llama/Llama-3.1-8B-Instruct, tokenizer: server } }
",
    related: "M004, M013, M022",
};

pub(crate) const UNSHOWN_QUEUE: LintText = LintText {
    title: "windows too short to show whether the server keeps up",
    when: "The plan has an `slo`, a sweep has several rates, and a window is shorter than 60 requests one after another. How long a \
           request takes is an estimate: output tokens × 20 ms, or what a mock is told.",
    reason: "A server keeps up with a rate where its queue comes back after it has risen, and that must be seen: the number in flight has \
             to swing 16 times. In a shorter window a rise may be the beginning of an overload. Such a load is `not_shown`: it counts for no \
             knee, no front and no capacity.",
    source: "docs/METRICS.md, Whether a server kept up: of 200 relaxation times of a queue there are some 55 swings, whatever the queue; \
             under a light load the relaxation time is that of a request.",
    wrong: "\
slo: { ttft: { p90: 2s } }
phases: { measure: 60s }
sweeps:
  load: { matrix: { scenario: [B1, B2], qps: [5, 10] } }
",
    right: "\
slo: { ttft: { p90: 2s } }
phases: { measure: 310s }
sweeps:
  load: { matrix: { scenario: [B1, B2], qps: [5, 10] } }
",
    related: "M005, M006, M019",
};

pub(crate) const NARROW_MARGIN: LintText = LintText {
    title: "a margin that the repeats seldom show",
    when: "`compare` has a `margin`, and as many rounds as the sweep has `repeats` show it in 80 % of cases only where rounds of arms \
           that are alike differ by less than 1 % (one standard deviation). Below 3 repeats M007 speaks.",
    reason: "That an arm is not worse is shown by an interval that lies within the margin, and an interval is as wide as rounds \
             differ. A gate on a margin that is too narrow says neither yes nor no, night after night.",
    source: "docs/METRICS.md, Comparison: margin, repeats for a margin. CONSORT extension for noninferiority trials, JAMA 2012, on the \
             size of a trial.",
    wrong: "\
sweeps:
  load:
    matrix: { qps: [5, 10] }
    compare: { by: qps, baseline: 5, margin: 1% }
    repeats: 3
",
    right: "\
sweeps:
  load:
    matrix: { qps: [5, 10] }
    compare: { by: qps, baseline: 5, margin: 3% }
    repeats: 5
",
    related: "M005, M007",
};

pub(crate) const FIXED_GPUS: LintText = LintText {
    title: "a flag changes the number of accelerators, and `gpus` does not follow it",
    when: "A `server` axis has several values of a flag of parallelism (`tensor_parallel_size`, `pipeline_parallel_size`, \
           `data_parallel_size`, `tp`, `tp_size`, `dp_size` and the like), and `hardware: { gpus }` of the launched endpoint is a number.",
    reason: "Figures per accelerator and costs are divided by the declared number. A server spread over twice as many accelerators would look \
             twice as good as it is.",
    source: "docs/METRICS.md, `output_throughput_per_gpu` and `cost_per_million_output_tokens`. vLLM's `--tensor-parallel-size`, `--pipeline-parallel-size` and `--data-parallel-size` \
             multiply to the accelerators that it takes.",
    wrong: "\
endpoints:
  vllm:
    engine: vllm
    hardware: { gpus: 1, price_per_hour: 4 }
    launch: { command: [vllm, serve, \"{{ model.id }}\", --port, \"{{ port }}\", \"{{ server.args }}\"], port: auto }
sweeps:
  load: { matrix: { scenario: [B1, B2], qps: [5, 10], server.tensor_parallel_size: [1, 2] } }
",
    right: "\
endpoints:
  vllm:
    engine: vllm
    hardware: { gpus: \"{{ server.tensor_parallel_size }}\", price_per_hour: \"{{ 4 * server.tensor_parallel_size }}\" }
    launch: { command: [vllm, serve, \"{{ model.id }}\", --port, \"{{ port }}\", \"{{ server.args }}\"], port: auto }
sweeps:
  load: { matrix: { scenario: [B1, B2], qps: [5, 10], server.tensor_parallel_size: [1, 2] } }
",
    related: "M011, M015",
};
