//! The table of all metrics of a run. METRICS.md is the source of the definitions.

use super::Better::{self, Higher, Lower, Neither};
use super::Scale::{self, Log, Plain};
use super::Unit::{self, Millis, Money, Ratio, Requests, RequestsPerSecond, Share, Tokens, TokensPerSecond};
use super::jitter::DEFINITION;
use super::{Kind, Metric, Of};

/// Minimum number of requests whose gaps together are representative of other requests (METRICS.md).
const FEWEST_REQUESTS_OF_GAPS: u64 = 30;

/// The key, title and definition of a metric, and when the metric is null.
type MetricText = [&'static str; 4];

const fn metric(kind: Kind, words: MetricText, unit: Unit, better: Better, scale: Scale) -> Metric {
    let [key, title, definition, null_when] = words;
    Metric { key, title, unit, better, scale, kind, definition, null_when }
}

const fn count(words: MetricText, better: Better) -> Metric {
    metric(Kind::Count, words, Requests, better, Plain)
}

const fn single(words: MetricText, unit: Unit, better: Better, scale: Scale) -> Metric {
    metric(Kind::Single, words, unit, better, scale)
}

const fn of_plan(words: MetricText, unit: Unit, better: Better, scale: Scale) -> Metric {
    metric(Kind::OfPlan, words, unit, better, scale)
}

/// Creates a metric with a time for each request.
const fn time(words: MetricText, null_of_request: &'static str, scale: Scale) -> Metric {
    let kind = Kind::Distribution { of: Of::Requests, fewest_requests: 0, null_of_request };
    metric(kind, words, Millis, Lower, scale)
}

/// Creates a metric with a rate for each request.
const fn rate(words: MetricText, null_of_request: &'static str) -> Metric {
    let kind = Kind::Distribution { of: Of::Requests, fewest_requests: 0, null_of_request };
    metric(kind, words, TokensPerSecond, Higher, Log)
}

/// Creates a metric with a time for each gap between the tokens of a request.
const fn gaps(words: MetricText) -> Metric {
    let null_of_request = "a request has one per gap";
    let kind = Kind::Distribution { of: Of::Gaps, fewest_requests: FEWEST_REQUESTS_OF_GAPS, null_of_request };
    metric(kind, words, Millis, Lower, Log)
}

/// Every metric of a run: single values first, then distributions. Columns of exports are in this
/// order.
#[rustfmt::skip]
pub const METRICS: [Metric; 41] = [
    count(["requests", "requests", "requests scheduled in [measure start, measure end)", ""], Neither),
    count(["completed", "completed", "requests of the window with a complete response", ""], Neither),
    count(["failed", "failed", "requests of the window without a complete response, including those cut at drain", ""], Lower),
    count(["cut", "cut at drain", "requests of the window still in flight at the end of drain", ""], Lower),
    single(["error_share", "error share", "failed / all requests of the window", "no request"], Share, Lower, Plain),
    single(["error_share_low", "error share, lower end", "lower end of the error share's 95 % interval within the run, for the effective number of independent requests in the window", "no request"], Share, Lower, Plain),
    single(["error_share_high", "error share, upper end", "upper end of the same interval; also set if no request failed", "no request"], Share, Lower, Plain),
    single(["output_throughput", "output throughput", "tokens whose event fell inside the measure window / window length, whichever request they belong to; an event of a multi-token stream counts streamed tokens / events", "empty window, nothing completed, or the tokens of a response are unknown"], TokensPerSecond, Higher, Log),
    single(["output_throughput_per_gpu", "per GPU", "output throughput / declared accelerators of the endpoint", "none declared, or nothing completed"], TokensPerSecond, Higher, Log),
    single(["prompt_throughput", "prompt throughput", "prompt tokens of requests whose first token fell inside the window / window length (not streaming: whose response ended inside)", "the server reports no prompt tokens, or nothing completed"], TokensPerSecond, Higher, Log),
    single(["request_throughput", "request throughput", "completed requests whose last token fell inside the window / window length", "empty window"], RequestsPerSecond, Higher, Log),
    single(["derived_server_throughput", "derived throughput", "mean user throughput × batch size", "open loop, or nothing completed"], TokensPerSecond, Higher, Log),
    single(["achieved_rate", "achieved rate", "requests sent in the window / window length", "empty window"], RequestsPerSecond, Neither, Log),
    single(["arrived_rate", "arrived rate", "requests that arrived in the window, according to the actual schedule / window length; compare it with the declared rate", "closed loop, or empty window"], RequestsPerSecond, Neither, Log),
    single(["achieved_concurrency", "achieved concurrency", "time average over the window of requests in flight", "empty window"], Requests, Neither, Plain),
    single(["tokens_per_event", "tokens per event", "streamed tokens / token events of completed requests of the window", "not streaming, nothing completed, or the tokens of a response are unknown"], Tokens, Neither, Log),
    single(["idle_start_ttft", "idle start TTFT", "TTFT of the run's first request, after a pause of `phases: { idle }`", "no pause, the request failed, or it was not alone"], Millis, Lower, Log),
    single(["idle_start_e2e", "idle start E2E", "E2E latency of the run's first request, after a pause of `phases: { idle }`", "no pause, the request failed, or it was not alone"], Millis, Lower, Log),
    single(["start_ready", "start until ready", "from the start of a launched server's command until its ready path (without one, its list of models) responds with 2xx; polled at intervals of 2 % of that time, from 10 to 250 ms", "the run does not measure a start"], Millis, Lower, Log),
    single(["start_first_answer", "start until first response", "from the start of a launched server's command until it has returned a first generation of four tokens", "the run does not measure a start"], Millis, Lower, Log),
    single(["declared_reuse", "declared reuse", "over the requests of the window that were sent: leading prompt tokens shared with earlier requests of the run / prompt tokens, by the server's count if available, else by our own", "nothing was sent, or the shared tokens of some requests are unknown"], Share, Neither, Plain),
    single(["cached_share", "cached prompt tokens", "prompt tokens from the server's prefix cache / prompt tokens, by the server's count, of the requests of the window", "the server does not report them"], Share, Neither, Plain),
    single(["jitter_ratio", "jitter ratio", DEFINITION, "p50 is 0, or too few gaps"], Ratio, Lower, Log),
    single(["jitter_ratio_low", "jitter ratio, lower end", "lower end of the jitter ratio's 95 % interval: lower end of p99(ITL) / upper end of p50(ITL)", "p99 has no lower end or p50 no upper end"], Ratio, Lower, Log),
    single(["jitter_ratio_high", "jitter ratio, upper end", "upper end of the jitter ratio's 95 % interval: upper end of p99(ITL) / lower end of p50(ITL)", "p99 has no upper end, or the lower end of p50 is missing or 0"], Ratio, Lower, Log),
    of_plan(["goodput_share", "goodput", "requests that met every threshold of the plan's goodput (open loops: from the schedule) / all requests of the window, failures counted as misses", "no thresholds in the plan, or latencies that are unknown without streaming"], Share, Higher, Plain),
    of_plan(["goodput", "goodput rate", "requests that met every threshold of the plan's goodput (open loops: from the schedule) / window length", "no thresholds in the plan, or latencies that are unknown without streaming"], RequestsPerSecond, Higher, Log),
    of_plan(["cost_per_million_output_tokens", "cost per million tokens", "declared price per hour / output tokens per hour × 1 000 000", "no price, or no throughput"], Money, Lower, Log),
    of_plan(["tokens_per_unit_of_money", "tokens per money", "output tokens per hour / declared price per hour", "no price"], Tokens, Higher, Log),
    time(["ttft", "TTFT", "first_token − sent", "nothing completed, no token, or not streaming"], "no token, failed, or not streaming", Log),
    time(["ttft_from_schedule", "TTFT from schedule", "first_token − scheduled: the time a user would have waited; free of coordinated omission", "nothing completed, no token, or not streaming"], "no token, failed, or not streaming", Log),
    time(["ttfo", "TTFO", "first_output − sent: the first content or tool call, reasoning excluded", "nothing completed, no output token, or not streaming"], "no output token, failed, or not streaming", Log),
    time(["e2e", "E2E", "last_token − sent (not streaming: done − sent)", "nothing completed"], "failed", Log),
    time(["e2e_from_schedule", "E2E from schedule", "last_token − scheduled (not streaming: done − scheduled)", "nothing completed"], "failed", Log),
    time(["tpot", "TPOT", "(last_token − first_token) / (streamed tokens − 1)", "nothing completed, fewer than 2 tokens or events, unknown tokens, or not streaming"], "failed, fewer than 2 tokens or events, unknown tokens, or not streaming", Log),
    gaps(["itl", "ITL", "every gap between successive token events, pooled over the window's requests; a gap belongs to events, not tokens", "nothing completed, or fewer than 2 events"]),
    time(["lateness", "lateness", "sent − released − connecting: the generator's own delay", "never sent"], "never sent", Plain),
    time(["connecting", "connecting", "DNS, TCP and TLS time of a connection opened for this request", "connection reused"], "connection reused", Plain),
    time(["cap_wait", "cap wait", "released − scheduled", "never released"], "never released", Plain),
    rate(["user_throughput", "user throughput", "streamed tokens / E2E latency; includes TTFT", "nothing completed, or no token count"], "failed, or no token count"),
    rate(["generation_throughput", "generation throughput", "(streamed tokens − 1) / (last_token − first_token): the inverse of TPOT", "nothing completed, fewer than 2 tokens or events, unknown tokens, or not streaming"], "failed, fewer than 2 tokens or events, unknown tokens, not streaming, or all tokens came in one read"),
];
