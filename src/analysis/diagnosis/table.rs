//! The table of symptoms with their checks: first symptoms in the client's figures, then symptoms
//! in telemetry.

use super::evidence::Symptom;
use super::look::Look;
use super::{scraped, symptoms};

/// All symptoms, each with the function that looks for it.
#[rustfmt::skip]
pub(super) static ALL: [(Symptom, Look); 13] = [
    (Symptom {
        key: "ttft_grows_with_input",
        title: "TTFT grows with the prompt at low concurrency",
        regime: "prefill: compute-bound work on the prompt's tokens",
        confirm: "accelerator compute near its limit during prefill; TTFT linear in prompt tokens",
        refute: "TTFT that grows with requests in flight as much as with tokens, which indicates a queue",
        response: "reuse prefixes, shorten prompts, more tensor parallelism, a lower compute precision",
    }, symptoms::ttft_grows_with_input),
    (Symptom {
        key: "tpot_high_alone",
        title: "TPOT is high at concurrency one",
        regime: "decode bound by memory bandwidth (weights read for each token) or by per-step overhead",
        confirm: "measured ÷ predicted: near 1 means bandwidth, far below means overhead; above 1, the declared \
                 figures do not match the actual setup",
        refute: "TPOT falls with a smaller model or fewer bytes per weight, but by less than the bytes do",
        response: "near 1: fewer bytes per weight, more bandwidth, speculative decoding; far below: CUDA graphs, a \
                   newer engine",
    }, symptoms::tpot_high_alone),
    (Symptom {
        key: "ttft_tail_spikes",
        title: "p99 TTFT spikes while p50 stays flat",
        regime: "some requests wait: behind long prefills, bursts of arrivals, or because of preemption",
        confirm: "the server's waiting and preempted requests over time; TTFT of requests behind a long prompt",
        refute: "a server queue that stays as short as at the lighter load",
        response: "chunked prefill, a smaller token budget per step, more memory for the KV cache, a cap on long \
                  prompts",
    }, symptoms::ttft_tail_spikes),
    (Symptom {
        key: "throughput_for_tpot",
        title: "throughput rises while TPOT worsens",
        regime: "larger batches: steps read more KV cache or reach the compute limit",
        confirm: "TPOT follows requests in flight; measured ÷ predicted with the KV cache stays about equal",
        refute: "TPOT rises while the number of requests running at the server stays the same",
        response: "a cap on requests in flight at the objective's TPOT limit; otherwise nothing, because this trade-off is expected",
    }, symptoms::throughput_for_tpot),
    (Symptom {
        key: "warm_equals_cold",
        title: "warm equals cold",
        regime: "the prefix cache has no effect: off, too small, or prefill is not the main part of TTFT",
        confirm: "cached prompt tokens in the rows; the cache's size relative to the prefixes' tokens",
        refute: "cached prompt tokens near the reusable ones: then prefill is not the main part of TTFT",
        response: "turn prefix caching on, give it memory, route requests with one prefix to one instance",
    }, symptoms::warm_equals_cold),
    (Symptom {
        key: "far_below_prediction",
        title: "decoding is far below what bandwidth allows",
        regime: "per-step overhead: kernel launches, scheduling on the CPU, communication between accelerators",
        confirm: "gaps between kernels in a profile; a CPU core of the server at its limit",
        refute: "`gpu_memory_bandwidth_utilization` above 60 %: then more is read than declared",
        response: "CUDA graphs, fewer and faster links to cross (less tensor parallelism), a faster host CPU",
    }, symptoms::far_below_prediction),
    (Symptom {
        key: "failures_grow_with_output",
        title: "longer responses fail more often under `ignore_eos`",
        regime: "the model writes on after its end, and the server cannot parse it (Harmony models such as gpt-oss)",
        confirm: "the server's errors name its parser; no failures with `ignore_eos: false`",
        refute: "as many failures with `ignore_eos: false`: then long responses fail for another reason",
        response: "`ignore_eos: false` in the scenario, with output lengths that the model reaches by itself",
    }, symptoms::failures_grow_with_output),
    (Symptom {
        key: "server_queue",
        title: "requests wait in the server's queue",
        regime: "more requests arrive than the server admits at a time: its limit of running requests, its KV cache, or \
                its speed",
        confirm: "`requests_waiting` above 0 over the window; the queue disappears at a lighter load (parts of \
                 TTFT in `show`)",
        refute: "`requests_waiting` at 0, or an equally long queue at a light load: then something else delays \
                requests",
        response: "if the KV cache has room and decoding is not slow: a higher limit of running requests; otherwise, less load or more replicas",
    }, scraped::server_queue),
    (Symptom {
        key: "few_at_a_time",
        title: "the server works on only a few of the requests in flight",
        regime: "small batches: a limit of running requests, a full KV cache, or requests that do not reach the server",
        confirm: "`requests_running` flat while the load grows; raise `max_num_seqs` (SGLang: `max_running_requests`) \
                  and compare",
        refute: "`requests_running` and output tokens/s that grow with the load",
        response: "a higher limit of running requests; if few wait at the server, check the client, gateway and \
                  connections",
    }, scraped::few_at_a_time),
    (Symptom {
        key: "kv_cache_short",
        title: "the KV cache is full",
        regime: "memory limits the batch: new requests wait for blocks, or preempt others",
        confirm: "`requests_waiting` and `preemptions` that rise with `kv_cache_usage`; shorter contexts let more \
                  requests run",
        refute: "as many requests running, and an equally long queue, with a larger cache",
        response: "more memory for the KV cache, an 8-bit KV cache, a lower context limit, more tensor parallelism",
    }, scraped::kv_cache_short),
    (Symptom {
        key: "preempted",
        title: "requests are preempted and recomputed",
        regime: "more requests were started than the KV cache can hold to completion",
        confirm: "`preemptions` that grow while `kv_cache_usage` is near 100 %; gaps between tokens where a \
                 request was preempted (`jitter_ratio`)",
        refute: "no preemptions at the same load with a lower limit of running requests, and the same latency",
        response: "a lower limit of running requests, or more memory for the KV cache",
    }, scraped::preempted),
    (Symptom {
        key: "throttled",
        title: "the GPU lowers its clock",
        regime: "the power cap, heat, or hardware; a run's reason names heat and hardware (`server_throttled`)",
        confirm: "`gpu_sm_clock` and `gpu_temperature` over the window; `nvidia-smi -q -d PERFORMANCE,POWER`",
        refute: "the same latency with a higher power cap or a cooler GPU",
        response: "cooling and the power cap first; otherwise, report the cap alongside the figures",
    }, scraped::throttled),
    (Symptom {
        key: "outside_the_server",
        title: "time passes outside the server",
        regime: "the client, opening connections, the network, or a gateway, depending on the largest part",
        confirm: "the parts of TTFT in `show`; the same load from a client next to the server",
        refute: "the same share outside with a client next to the server: then it is the server's HTTP handling",
        response: "`connections: warm`, a cap that the load does not reach, a client near the server, no gateway in \
                   between",
    }, scraped::outside_the_server),
];
