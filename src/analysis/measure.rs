//! Every metric of one run that needs no plan.

use crate::rows::{Facts, Measured};

use super::failures::Failures;
use super::gaps::{Events, Gaps};
use super::idle::IdleStart;
use super::request::{Metric, summarize};
use super::reuse::Reuse;
use super::stats::{Interval, Summary};
use super::window::{self, Counts, Flow};

/// Every metric of one run that needs no plan. Times are milliseconds; METRICS defines each, `metric` documents it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMetrics {
    /// How the requests of the window ended.
    pub counts: Counts,
    /// How those that failed ended, and what was said of them.
    pub failures: Failures,
    /// Time to first token from sending.
    pub ttft: Summary,
    /// Time to first token from the schedule.
    pub ttft_from_schedule: Summary,
    /// Time to first output from sending.
    pub ttfo: Summary,
    /// End-to-end latency from sending.
    pub e2e: Summary,
    /// End-to-end latency from the schedule.
    pub e2e_from_schedule: Summary,
    /// Time per output token.
    pub tpot: Summary,
    /// Gaps between token events, pooled; intervals from a bootstrap over requests.
    pub itl: Summary,
    /// The generator's own delay.
    pub lateness: Summary,
    /// Time to open connections.
    pub connecting: Summary,
    /// Time spent waiting for the in-flight cap.
    pub cap_wait: Summary,
    /// Tokens per second that a user saw, first token included.
    pub user_throughput: Summary,
    /// Tokens per second of one stream after its first token.
    pub generation_throughput: Summary,
    /// Rates over the window.
    pub flow: Flow,
    /// Mean user throughput × batch size; null for open loops, and where users think: then slots are not all at work.
    pub derived_server_throughput: Option<f64>,
    /// p99(ITL) / p50(ITL).
    pub jitter_ratio: Option<f64>,
    /// Bootstrap interval of the jitter ratio.
    pub jitter_interval: Option<Interval>,
    /// The first request after a pause.
    pub idle_start: IdleStart,
    /// What the prefix cache gave back, and what was declared.
    pub reuse: Reuse,
    /// Output tokens per token event.
    pub tokens_per_event: Option<f64>,
    /// Output throughput per declared accelerator.
    pub output_throughput_per_gpu: Option<f64>,
}

/// Measures one run: `rows` are its requests of every phase. Where no request of the window completed there is no latency,
/// and no throughput of tokens: what failures took and gave until then is none.
pub fn measure(rows: &[Measured], (events, gaps): (&Events, &Gaps), facts: &Facts) -> RunMetrics {
    let counts = Counts::of(rows, facts);
    let any = counts.completed > 0;
    let of_all = |metric| summarize(window::members(rows, facts).map(|row| window::request(row, facts)), metric);
    let of = |metric| if any { of_all(metric) } else { nothing() };
    let flow = Flow::of(rows, events, facts);
    let flow = if any { flow } else { Flow { output_throughput: None, prompt_throughput: None, ..flow } };
    let user_throughput = of(Metric::UserThroughput);
    RunMetrics {
        counts,
        failures: Failures::of(rows, facts),
        ttft: of(Metric::Ttft),
        ttft_from_schedule: of(Metric::TtftFromSchedule),
        ttfo: of(Metric::Ttfo),
        e2e: of(Metric::E2e),
        e2e_from_schedule: of(Metric::E2eFromSchedule),
        tpot: of(Metric::Tpot),
        itl: if any { gaps.itl.clone() } else { nothing() },
        lateness: of_all(Metric::Lateness),
        connecting: of_all(Metric::Connecting),
        cap_wait: of_all(Metric::CapWait),
        generation_throughput: of(Metric::GenerationThroughput),
        derived_server_throughput: derived(&user_throughput, facts),
        user_throughput,
        jitter_ratio: gaps.jitter.filter(|_| any),
        jitter_interval: gaps.jitter_interval.filter(|_| any),
        idle_start: IdleStart::of(rows, facts),
        reuse: Reuse::of(rows, facts),
        tokens_per_event: window::tokens_per_event(rows, facts),
        output_throughput_per_gpu: per_gpu(flow.output_throughput, facts),
        flow,
    }
}

/// The distribution of a latency that no request has.
fn nothing() -> Summary {
    Summary::of(Vec::new(), 0, None)
}

fn derived(user_throughput: &Summary, facts: &Facts) -> Option<f64> {
    let batch_size = facts.batch_size.filter(|_| !facts.open_loop && !facts.thinks)?;
    Some(user_throughput.mean? * f64::from(batch_size))
}

fn per_gpu(throughput: Option<f64>, facts: &Facts) -> Option<f64> {
    Some(throughput? / f64::from(facts.gpus.filter(|gpus| *gpus > 0)?))
}

/// What a million output tokens cost at a price per hour of the whole endpoint; null at no throughput.
pub fn cost_per_million_output_tokens(output_throughput: Option<f64>, price_per_hour: f64) -> Option<f64> {
    let per_hour = output_throughput.filter(|throughput| *throughput > 0.0)? * 3600.0;
    Some(price_per_hour / per_hour * 1e6)
}

/// How many output tokens one unit of money buys; null at no price.
pub fn tokens_per_unit_of_money(output_throughput: Option<f64>, price_per_hour: f64) -> Option<f64> {
    let per_hour = output_throughput? * 3600.0;
    (price_per_hour > 0.0).then(|| per_hour / price_per_hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_price_over_tokens() {
        // 1 000 tokens/s are 3.6 million an hour: at 36 an hour, a million costs 10.
        assert_eq!(cost_per_million_output_tokens(Some(1000.0), 36.0), Some(10.0));
        assert_eq!(tokens_per_unit_of_money(Some(1000.0), 36.0), Some(100_000.0));
        assert_eq!(cost_per_million_output_tokens(Some(0.0), 36.0), None);
        assert_eq!(cost_per_million_output_tokens(None, 36.0), None);
        assert_eq!(tokens_per_unit_of_money(Some(1000.0), 0.0), None);
    }
}
