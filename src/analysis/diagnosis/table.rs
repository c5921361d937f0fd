//! The table of symptoms, each with the function that looks for it: first those of a client's figures, then those of what was scraped.

use super::evidence::Symptom;
use super::look::Look;
use super::{scraped, symptoms};

/// The table.
#[rustfmt::skip]
pub(super) static ALL: [(Symptom, Look); 12] = [
    (Symptom {
        key: "ttft_grows_with_input",
        title: "TTFT grows with the prompt at low concurrency",
        regime: "prefill: compute-bound work on the prompt's tokens",
        confirm: "accelerator compute near its limit during prefill; TTFT linear in prompt tokens",
        refute: "TTFT that grows with requests in flight as much as with tokens: then it is a queue",
        response: "reuse prefixes, shorten prompts, more tensor parallelism, a lower precision of compute",
    }, symptoms::ttft_grows_with_input),
    (Symptom {
        key: "tpot_high_alone",
        title: "TPOT is high at concurrency one",
        regime: "decode bound by memory bandwidth (weights read for each token) or by the overhead of each step",
        confirm: "measured ÷ predicted: near 1 it is bandwidth, far below it is overhead; above 1 what is declared is not what runs",
        refute: "a TPOT that falls with a smaller model or fewer bytes per weight by less than the bytes do",
        response: "near 1: fewer bytes per weight, more bandwidth, speculative decoding; far below: CUDA graphs, a newer engine",
    }, symptoms::tpot_high_alone),
    (Symptom {
        key: "ttft_tail_spikes",
        title: "p99 TTFT spikes while p50 stays",
        regime: "some requests wait: long prefills in front of them, bursts of arrivals, or preemption",
        confirm: "the server's waiting and preempted requests over time; TTFT of those behind a long prompt",
        refute: "a queue at the server that stays as short as at the lighter load",
        response: "chunked prefill, a smaller token budget of a step, more memory for the KV cache, a cap on long prompts",
    }, symptoms::ttft_tail_spikes),
    (Symptom {
        key: "throughput_for_tpot",
        title: "throughput rises while TPOT worsens",
        regime: "larger batches: steps read more KV cache or reach the compute limit",
        confirm: "TPOT follows requests in flight; measured ÷ predicted with the KV cache stays about equal",
        refute: "a TPOT that rises while as many requests run at the server as before",
        response: "a cap on requests in flight where the objective's TPOT ends, else nothing: it is the trade itself",
    }, symptoms::throughput_for_tpot),
    (Symptom {
        key: "warm_equals_cold",
        title: "warm equals cold",
        regime: "the prefix cache gives nothing: off, too small, or prefill is not what TTFT is made of",
        confirm: "cached prompt tokens in the rows; the cache's size against the prefixes' tokens",
        refute: "cached prompt tokens near those that could be reused: then prefill is not what TTFT is made of",
        response: "turn prefix caching on, give it memory, route requests of one prefix to one instance",
    }, symptoms::warm_equals_cold),
    (Symptom {
        key: "far_below_prediction",
        title: "decoding is far below what bandwidth allows",
        regime: "overhead of each step: kernel launches, scheduling on the CPU, communication between accelerators",
        confirm: "gaps between kernels in a profile; a CPU core of the server at its limit",
        refute: "`gpu_memory_bandwidth_utilization` above 60 %: then more is read than is declared",
        response: "CUDA graphs, fewer and faster links to cross (less tensor parallelism), a faster host CPU",
    }, symptoms::far_below_prediction),
    (Symptom {
        key: "server_queue",
        title: "requests wait in the server's queue",
        regime: "more comes than the server takes on at a time: its limit of running requests, its KV cache, or its speed",
        confirm: "`requests_waiting` above 0 over the window; the queue goes with a lighter load (parts of TTFT in `show`)",
        refute: "`requests_waiting` at 0, or a queue as long at a light load: then something else holds requests back",
        response: "where the KV cache has room and decoding is not slow: a higher limit of running requests; else less load or more replicas",
    }, scraped::server_queue),
    (Symptom {
        key: "few_at_a_time",
        title: "the server works on few of the requests that are in flight",
        regime: "small batches: a limit of running requests, a full KV cache, or requests that do not reach the server",
        confirm: "`requests_running` flat while the load grows; raise `max_num_seqs` (SGLang: `max_running_requests`) and compare",
        refute: "`requests_running` and output tokens/s that grow with the load",
        response: "a higher limit of running requests; where few wait at the server, look at the client, gateway and connections",
    }, scraped::few_at_a_time),
    (Symptom {
        key: "kv_cache_short",
        title: "the KV cache is full",
        regime: "memory limits the batch: new requests wait for blocks, or push others out",
        confirm: "`requests_waiting` and `preemptions` that rise with `kv_cache_usage`; shorter contexts let more requests run",
        refute: "as many requests running, and as long a queue, with a larger cache",
        response: "more memory for the KV cache, an 8-bit KV cache, a lower limit of context, more tensor parallelism",
    }, scraped::kv_cache_short),
    (Symptom {
        key: "preempted",
        title: "requests are put back and computed again",
        regime: "more was started than the KV cache holds to the end",
        confirm: "`preemptions` that grow while `kv_cache_usage` is near 100 %; gaps between tokens where a request was put back (`jitter_ratio`)",
        refute: "no preemptions at the same load with a lower limit of running requests, and the same latency",
        response: "a lower limit of running requests, or more memory for the KV cache",
    }, scraped::preempted),
    (Symptom {
        key: "throttled",
        title: "the GPU lowers its clock",
        regime: "the power cap, heat, or hardware; the reason of a run names heat and hardware (`server_throttled`)",
        confirm: "`gpu_sm_clock` and `gpu_temperature` over the window; `nvidia-smi -q -d PERFORMANCE,POWER`",
        refute: "the same latency with a higher power cap or a cooler GPU",
        response: "cooling and the power cap first; else state the cap beside the figures",
    }, scraped::throttled),
    (Symptom {
        key: "outside_the_server",
        title: "time passes outside the server",
        regime: "the client, opening connections, the network, or a gateway, by the largest part",
        confirm: "the parts of TTFT in `show`; the same load from a client beside the server",
        refute: "the same share outside from beside the server: then it is the server's own handling of HTTP",
        response: "`connections: warm`, a cap that the load does not reach, a client near the server, no gateway in between",
    }, scraped::outside_the_server),
];
